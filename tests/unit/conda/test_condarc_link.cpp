#include "conda/condarc_link.hpp"

#include "link_machine.hpp"
#include "support/catch.hpp"

using namespace sharefs;
using namespace sharefs::conda;
using namespace sharefs::test;

namespace {

const std::string k_condarc = "/home/alice/.condarc";
const std::string k_mark = " # by sharefs conda link --condarc\n";

LinkRequest condarc_request(LinkRequest request) {
  request.condarc = true;
  return only_alice(std::move(request));
}

/// Hers, whoever runs the test.
struct CondarcMachine : LinkMachine {
  void condarc(const std::string& text) {
    file(k_condarc, text);
    auto& found = entry(k_condarc);
    found.uid = found.gid = 1000;
    found.kind = sys::EntryKind::file;
    found.content = text;
  }
};

std::vector<std::string> linking(FakeHomes& machine) {
  return plan_of(machine, condarc_request(link_request()));
}
std::vector<std::string> unlinking(FakeHomes& machine) {
  return plan_of(machine, condarc_request(unlink_request({})));
}

} // namespace

TEST_CASE("requirement 13: the store in .condarc, as its user, and no link", "[conda]") {
  CondarcMachine machine;
  const std::string line = "envs_dirs: [/home/alice/miniconda3/envs, /data/share/conda]" + k_mark;
  CHECK(linking(machine) == std::vector<std::string>{"alice@/home/alice: write " + k_condarc + " anew: " + line});
  CHECK(unlinking(machine).empty());

  machine.condarc("channels: [a]\nenvs_dirs: [/mine]\n");
  CHECK(linking(machine) == std::vector<std::string>{"alice@/home/alice: write " + k_condarc +
                                                     ": channels: [a]\nenvs_dirs: [/mine, /data/share/conda]\n"});
  CHECK(unlinking(machine).empty());

  machine.condarc("channels: [a]\n" + line);
  CHECK(linking(machine).empty());
  CHECK(summarize(probe(machine, condarc_request(link_request()))->homes.front(), condarc_request(link_request())) ==
        HomeSummary::right);
  CHECK(unlinking(machine) == std::vector<std::string>{"alice@/home/alice: write " + k_condarc + ": channels: [a]\n"});
  machine.condarc(line);
  CHECK(unlinking(machine) == std::vector<std::string>{"alice@/home/alice: remove " + k_condarc});
}

TEST_CASE("a store from which others could take an environment is named before it is in .condarc", "[conda]") {
  CondarcMachine machine;
  const auto request = condarc_request(link_request());
  for (const auto& [mode, said] : {std::pair(02775U, true), {0757U, true}, {03775U, false}, {0755U, false}}) {
    machine.entry("/data/share/conda").mode = mode;
    INFO(mode);
    const auto found = verdicts_of(machine, request);
    CHECK(found == (said ? std::vector<std::string>{"SF306 warning /data/share/conda"} : std::vector<std::string>{}));
  }
}

TEST_CASE("where conda is not the user's to write, ~/.conda/envs is the first directory", "[conda]") {
  CondarcMachine machine;
  auto request = condarc_request(link_request());
  machine.directory("/opt/conda/envs");
  request.homes = {{{"alice", "bob"}, "/opt/conda"}};
  for (const bool writable : {false, true}) {
    machine.entry("/opt/conda/envs").writable = writable;
    const auto steps = plan_of(machine, request);
    REQUIRE(steps.size() == 2); // one of each user, though the installation is one
    CHECK(steps[1] == "bob@/home/bob: write /home/bob/.condarc anew: envs_dirs: [" +
                          std::string(writable ? "/opt/conda/envs" : "/home/bob/.conda/envs") + ", /data/share/conda]" +
                          k_mark);
  }
}

TEST_CASE("a .condarc that is not changed", "[conda]") {
  CondarcMachine machine;
  SECTION("a link") {
    machine.file("/home/alice/dotfiles/condarc", "envs_dirs: [/data/share/conda]\n");
    machine.link(k_condarc, "dotfiles/condarc");
  }
  SECTION("another's") {
    machine.condarc("channels: [a]\n");
    machine.entry(k_condarc).uid = 0;
  }
  SECTION("of a group that is not hers") {
    machine.condarc("channels: [a]\n");
    machine.entry(k_condarc).uid = 1000;
    machine.entry(k_condarc).gid = 0;
  }
  SECTION("a directory") {
    machine.directory(k_condarc);
  }
  SECTION("too large") {
    machine.condarc(std::string(70'000, '#'));
  }
  SECTION("not to be understood") {
    machine.condarc("envs_dirs: [/a,\n /b]\n");
  }
  const auto request = condarc_request(link_request());
  CHECK(linking(machine).empty());
  CHECK(verdicts_of(machine, request) == std::vector<std::string>{"SF321 error " + k_condarc});
  CHECK(summarize(probe(machine, request)->homes.front(), request) == HomeSummary::blocked);
  CHECK(diagnose(*probe(machine, request), request)
            .front()
            .hint.find("`envs_dirs: [/home/alice/miniconda3/envs, /data/share/conda]`") != std::string::npos);
  CHECK(unlinking(machine).empty());
}

TEST_CASE("homes without what --condarc needs", "[conda]") {
  CondarcMachine machine;
  const auto request = condarc_request(link_request());
  SECTION("closed") {
    machine.deny["alice"] = {"/home/alice"};
    CHECK(verdicts_of(machine, request) == std::vector<std::string>{"SF312 error /home/alice"});
  }
  SECTION("without conda") {
    machine.machine().entries["/home/alice/miniconda3"].kind = sys::EntryKind::missing;
    CHECK(verdicts_of(machine, request) == std::vector<std::string>{"SF314 error /home/alice/miniconda3"});
  }
  SECTION("that hangs") {
    machine.hang(k_condarc);
    CHECK(verdicts_of(machine, request) == std::vector<std::string>{"SF312 error " + k_condarc});
  }
  CHECK(linking(machine).empty());
}

TEST_CASE("CONDA_ENVS_PATH and CONDA_ENVS_DIRS beside .condarc", "[conda]") {
  CondarcMachine machine;
  auto request = condarc_request(link_request());
  machine.file("/home/alice/.bashrc", "export CONDA_ENVS_DIRS=/a\n");
  CHECK(verdicts_of(machine, request) == std::vector<std::string>{"SF323 info alice"});
  SECTION("of the host") {
    machine.file("/etc/profile.d/conda.sh", "\nexport CONDA_ENVS_PATH=/b\n");
  }
  SECTION("of the process") {
    request.variables = {{"CONDA_ENVS_PATH", "the environment"}};
  }
  CHECK(verdicts_of(machine, request) == std::vector<std::string>{"SF322 warning alice"});
  CHECK(linking(machine).size() == 1); // said, and done
}
