#include "link_machine.hpp"
#include "support/catch.hpp"

#include <algorithm>

using namespace sharefs;
using namespace sharefs::conda;
using test::FakeHomes;

namespace {

struct Machine : FakeHomes {
  Machine() {
    mount("/data/share");
    environment("/data/share/conda/llm");
    environment("/data/share/conda/eval");
  }
};

LinkRequest wants(std::vector<std::string> environments) {
  LinkRequest request;
  request.store = "/data/share/conda";
  request.environments = std::move(environments);
  request.shares = {{"other", "/data"}, {"share", "/data/share"}};
  return request;
}

StoreState probe_as(FakeHomes& machine, LinkRequest request, std::vector<std::string> readers = {}) {
  request.homes = {{std::move(readers), "miniconda3"}};
  return probe_store(machine, machine.machine().mounts, request);
}

struct Verdict {
  Severity severity;
  std::string code, words; ///< words of message, hint or fix
};

void check_verdicts(const Diagnoses& found, const std::vector<Verdict>& wanted) {
  REQUIRE(found.size() == wanted.size());
  for (std::size_t index = 0; index < wanted.size(); ++index) {
    const auto said = found[index].message + "|" + found[index].hint + "|" + found[index].fix;
    CAPTURE(said);
    CHECK(found[index].severity == wanted[index].severity);
    CHECK(found[index].code == wanted[index].code);
    CHECK(said.find(wanted[index].words) != std::string::npos);
  }
}

} // namespace

TEST_CASE("a store that is as it should be says nothing", "[conda]") {
  Machine machine;
  const auto state = probe_as(machine, wants({"llm", "eval"}));
  REQUIRE(state.share);
  CHECK(state.share->name == "share"); // the deepest one above the store
  CHECK(state.entry.mount == "/data/share");
  CHECK(diagnose_store(state).empty());
}

TEST_CASE("what is wrong with a store is named", "[conda]") {
  Machine machine;
  SECTION("its share is not mounted, and nothing below is touched") {
    FakeHomes bare;
    bare.environment("/data/share/conda/llm"); // left behind below the mount point
    check_verdicts(diagnose_store(probe_as(bare, wants({"llm"}))), {{Severity::error, "SF301", "sharefs mount share"}});
    CHECK(bare.asked().empty());
  }
  SECTION("the share is mounted, the directory is missing") {
    auto request = wants({"llm"});
    request.store = "/data/share/envs";
    check_verdicts(diagnose_store(probe_as(machine, request)), {{Severity::error, "SF324", "sharefs conda share"}});
  }
  SECTION("no share is known and the directory is missing") {
    auto request = wants({"llm"});
    request.store = "/srv/conda";
    request.shares.clear();
    check_verdicts(diagnose_store(probe_as(machine, request)), {{Severity::error, "SF302", "local file system"}});
  }
  SECTION("the server is dead") {
    machine.hang("/data/share/conda");
    check_verdicts(diagnose_store(probe_as(machine, wants({"llm"}))), {{Severity::error, "SF302", "sharefs status"}});
  }
  SECTION("stale") {
    auto& store = machine.entry("/data/share/conda");
    store.kind = sys::EntryKind::unknown;
    store.error_number = ESTALE;
    check_verdicts(diagnose_store(probe_as(machine, wants({"llm"}))),
                   {{Severity::error, "SF302", "sharefs recover share"}});
  }
  SECTION("a file") {
    machine.file("/data/share/conda");
    check_verdicts(diagnose_store(probe_as(machine, wants({"llm"}))), {{Severity::error, "SF302", "not a directory"}});
  }
}

TEST_CASE("environments of the store", "[conda]") {
  Machine machine;
  SECTION("missing, with the nearest name") {
    check_verdicts(diagnose_store(probe_as(machine, wants({"lllm"}))), {{Severity::error, "SF303", "`llm`"}});
  }
  SECTION("without conda-meta") {
    machine.directory("/data/share/conda/half");
    check_verdicts(diagnose_store(probe_as(machine, wants({"half"}))), {{Severity::warning, "SF304", "conda-meta"}});
  }
  SECTION("for everybody to change") {
    machine.entry("/data/share/conda/llm").mode = 0777;
    check_verdicts(diagnose_store(probe_as(machine, wants({"llm"}))),
                   {{Severity::warning, "SF305", "chmod -R o-w /data/share/conda/llm"}});
  }
  SECTION("a link to a generation is followed") {
    machine.environment("/data/share/conda/.generations/gen/0001");
    machine.link("/data/share/conda/gen", ".generations/gen/0001");
    CHECK(diagnose_store(probe_as(machine, wants({"gen"}))).empty());
  }
}

TEST_CASE("a store that root may not read is read as one of its users", "[conda]") {
  Machine machine;
  machine.user("alice", 1000);
  machine.user("bob", 1001);
  const auto request = wants({"llm"});
  const std::vector<std::string> readers{"alice", "bob"};
  machine.deny[""].insert("/data/share/conda");
  machine.deny["alice"].insert("/data/share/conda");
  SECTION("one who may") {
    CHECK(diagnose_store(probe_as(machine, request, readers)).empty());
  }
  SECTION("nobody may: said once, and not an error") {
    machine.deny["bob"].insert("/data/share/conda");
    check_verdicts(diagnose_store(probe_as(machine, request, readers)),
                   {{Severity::warning, "SF302", "search permission"}});
  }
  SECTION("not as another user without root") {
    machine.self().uid = 1000;
    machine.self().gid = 1000;
    check_verdicts(diagnose_store(probe_as(machine, request, readers)),
                   {{Severity::warning, "SF302", "search permission"}});
    CHECK(std::ranges::none_of(machine.asked(),
                               [](const auto& asked) { return asked.find(" as ") != std::string::npos; }));
  }
}
