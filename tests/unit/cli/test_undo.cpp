// sharefs undo on a journal that real runs of plan::apply have written, under a temporary root.
#include "cli/app.hpp"
#include "plan/apply.hpp"
#include "plan/journal.hpp"
#include "support/catch.hpp"
#include "sys/real_system.hpp"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <unistd.h>

using namespace sharefs;
namespace fs = std::filesystem;

namespace {

class Machine {
 public:
  Machine() {
    // In memory where there is a tmpfs: the journal syncs every step.
    std::string name = (::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp") + std::string("/sharefs-unit-XXXXXX");
    m_root = ::mkdtemp(name.data());
  }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  ~Machine() {
    std::error_code ignored;
    fs::remove_all(m_root, ignored);
  }

  [[nodiscard]] std::string at(const std::string& path) const { return m_root + path; }
  std::string change(const plan::Plan& plan, const std::string& command) {
    sys::RealSystem system(m_root);
    const plan::Journal journal(system.files(), plan::state_directory(system.identity(), *system.mounts()));
    plan::ApplyOptions options;
    options.command = command;
    return plan::apply(plan, system, journal, options).journal_id;
  }
  std::string write(const std::string& path) {
    plan::Plan plan;
    plan.add("", "why", plan::WriteFile{path, std::nullopt, "x", 0644});
    return change(plan, "sharefs write " + path);
  }

  int undo(Argv arguments) {
    std::istringstream in;
    std::ostringstream out_stream;
    std::ostringstream err_stream;
    cli::Host host{[](const std::string& root) { return std::make_unique<sys::RealSystem>(root); },
                   in,
                   out_stream,
                   err_stream,
                   {},
                   {},
                   "/"};
    arguments.insert(arguments.begin(), {"sharefs", "--root", m_root, "undo"});
    const int code = cli::run(arguments, host);
    out = out_stream.str();
    err = err_stream.str();
    return code;
  }
  std::string out, err;

 private:
  std::string m_root;
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("undo without a journal", "[undo]") {
  Machine machine;
  CHECK(machine.undo({"--yes"}) == 0);
  CHECK(machine.err == "there is nothing to undo\n");
  CHECK(machine.undo({"--list"}) == 0);
  CHECK(machine.err == "sharefs has not changed anything here yet\n");
  CHECK(machine.undo({"--list", "--json"}) == 0);
  CHECK(nlohmann::json::parse(machine.out)["entries"].empty());
  CHECK(machine.undo({"20260131-120000-1"}) == 1);
  CHECK(has(machine.err, "the journal has no entry `20260131-120000-1`"));
}

TEST_CASE("undo takes back the newest, then the one before, then nothing", "[undo]") {
  Machine machine;
  const auto first = machine.write("/first");
  const auto second = machine.write("/second");
  CHECK(machine.undo({"--check"}) == 3);
  CHECK(machine.undo({"--dry-run"}) == 0);
  CHECK(has(machine.err, "remove /second"));
  CHECK(machine.undo({}) == 2); // no terminal, no --yes
  CHECK(fs::exists(machine.at("/second")));
  CHECK(machine.undo({"--yes"}) == 0);
  CHECK(has(machine.err, "taking back `sharefs write /second`"));
  CHECK_FALSE(fs::exists(machine.at("/second")));
  CHECK(machine.undo({"--yes"}) == 0);
  CHECK_FALSE(fs::exists(machine.at("/first")));
  CHECK(machine.undo({"--yes"}) == 0);
  CHECK(has(machine.err, "there is nothing to undo"));

  CHECK(machine.undo({"--list", "--json"}) == 0);
  const auto entries = nlohmann::json::parse(machine.out)["entries"];
  REQUIRE(entries.size() == 4);
  CHECK(entries[3]["id"] == first);
  CHECK(entries[3]["state"] == "undone");
  CHECK(entries[3]["command"] == "sharefs write /first");
  CHECK(entries[3]["undone_by"] == entries[0]["id"]);
  CHECK(entries[0]["undoes"] == first);
  CHECK(entries[0]["state"] == "complete");
  CHECK(entries[2]["id"] == second);
  CHECK(machine.undo({"--list"}) == 0);
  CHECK(has(machine.out, "COMMAND"));
  CHECK(has(machine.out, first));

  CHECK(machine.undo({first, "--yes"}) == 0);
  CHECK(has(machine.err, first + " is undone already; `sharefs undo " + entries[0]["id"].get<std::string>()));
  CHECK(machine.undo({entries[0]["id"].get<std::string>(), "--yes"}) == 0);
  CHECK(fs::exists(machine.at("/first")));
}

TEST_CASE("a conflict leaves what somebody else wrote", "[undo]") {
  Machine machine;
  machine.write("/f");
  std::ofstream(machine.at("/f")) << "theirs";
  CHECK(machine.undo({"--yes"}) == 1);
  CHECK(has(machine.err, "/f: expected the content"));
  CHECK(fs::exists(machine.at("/f")));
}

TEST_CASE("what has no way back, and a damaged entry, are said", "[undo]") {
  Machine machine;
  fs::create_directory(machine.at("/from"));
  plan::Plan plan;
  plan.add("", "why", plan::CopyTree{"/from", "/to"});
  const auto id = machine.change(plan, "sharefs copy");
  CHECK(machine.undo({"--yes"}) == 1);
  CHECK(has(machine.err, "nothing of " + id + " (`sharefs copy`) can be taken back"));
  CHECK(has(machine.err, "cannot be undone: copy /from to /to"));
  for (const auto& file : fs::recursive_directory_iterator(machine.at("/")))
    if (file.path().filename() == "plan.json")
      std::ofstream(file.path(), std::ios::trunc) << "{";
  CHECK(machine.undo({id, "--yes"}) == 1);
  CHECK(has(machine.err, "the journal entry `" + id + "` is damaged"));
}

TEST_CASE("an undo that was cut off at its very end is marked as done", "[undo]") {
  Machine machine;
  const auto id = machine.write("/f");
  plan::Plan attempt; // what an undo does, without its mark
  attempt.undoes = id;
  attempt.add("", "undo", plan::RemoveFile{"/f", "x", 0644});
  attempt.add("b", "fails", plan::RemoveDirectory{"/", 0755, {}});
  machine.change(attempt, "sharefs undo");
  CHECK(machine.undo({"--check"}) == 0);
  CHECK(machine.undo({"--yes"}) == 0);
  CHECK(has(machine.err, "there is nothing left to take back of " + id));
  CHECK(machine.undo({"--yes"}) == 0);
  CHECK(has(machine.err, "there is nothing to undo"));
}
