// sharefs undo on a journal that real runs of plan::apply have written, under a temporary root.
#include "cli/app.hpp"
#include "cli/execute.hpp"
#include "plan/apply.hpp"
#include "plan/journal.hpp"
#include "support/catch.hpp"
#include "sys/real_system.hpp"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

using namespace sharefs;
namespace fs = std::filesystem;

namespace {

class Machine {
 public:
  std::string typed; ///< on a terminal, if it is not empty
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
    const plan::Journal journal(system.files(),
                                plan::state_directory(system.files(), system.identity(), *system.mounts()));
    plan::ApplyOptions options;
    options.command = command;
    options.identity = system.identity();
    return plan::apply(plan, system, journal, options).journal_id;
  }
  std::string write(const std::string& path) {
    plan::Plan plan;
    plan.add("", "why", plan::File{path, std::nullopt, "x", 0644});
    return change(plan, "sharefs write " + path);
  }

  int undo(Argv arguments) {
    std::istringstream in(typed);
    ui::ConsoleOptions console;
    console.in_terminal = !typed.empty();
    std::ostringstream out_stream;
    std::ostringstream err_stream;
    cli::Host host{[](const std::string& root) { return std::make_unique<sys::RealSystem>(root); },
                   in,
                   out_stream,
                   err_stream,
                   console,
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
  CHECK(machine.undo({"17"}) == 1);
  CHECK(has(machine.err, "the journal has no entry `17`"));
}

TEST_CASE("undo takes back several changes, and its document names the entries of all", "[undo]") {
  Machine machine;
  for (const auto* path : {"/first", "/second", "/third"})
    machine.write(path);
  CHECK(machine.undo({"3", "7", "--yes"}) == 1); // nothing is begun where one of them is not there
  CHECK(fs::exists(machine.at("/third")));
  CHECK(machine.undo({"3", "1", "--yes", "--json"}) == 0);
  const auto document = nlohmann::json::parse(machine.out);
  CHECK(document["results"].size() == 2);
  CHECK((document["journal_id"] == "5" && document["earlier_journal_ids"] == std::vector<std::string>{"4"}));
  CHECK_FALSE(fs::exists(machine.at("/third")));
  CHECK_FALSE(fs::exists(machine.at("/first")));
  CHECK(fs::exists(machine.at("/second")));
}

TEST_CASE("a command with two plans names the entries of both", "[undo]") {
  Machine machine;
  sys::RealSystem system(machine.at("/"));
  std::istringstream in;
  std::ostringstream out;
  std::ostringstream err;
  const ui::ConsoleOptions options;
  ui::Console console(in, out, err, options);
  cli::Host host{{}, in, out, err, options, {}, "/"};
  cli::GlobalFlags flags;
  flags.yes = true;
  cli::Context context(host, system, console, flags, {"sharefs", "test"});
  const auto writes = [](const std::string& path) -> Result<cli::Proposal> {
    plan::Plan plan;
    plan.add("", "why", plan::File{path, std::nullopt, "x", 0644});
    return cli::Proposal{plan, ""};
  };
  REQUIRE(cli::execute(context, [&] { return writes("/first"); }));
  REQUIRE(cli::execute_further(context, [&] { return writes("/second"); }));
  REQUIRE(cli::execute_further(context, [&] { return writes("/second"); })); // there by now: nothing to do
  CHECK(context.envelope.report->journal_id == "2");
  CHECK(context.envelope.report->earlier_ids == std::vector<std::string>{"1"});
}

TEST_CASE("undo takes back the newest, then the one before, then nothing", "[undo]") {
  Machine machine;
  const auto first = machine.write("/first");
  const auto second = machine.write("/second");
  CHECK(machine.undo({"--check"}) == 3);
  CHECK(machine.undo({"--dry-run"}) == 0);
  CHECK(has(machine.out, "remove /second"));
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
  CHECK(has(machine.err, first + " is undone already; `sharefs --root "));
  CHECK(has(machine.err, " undo " + entries[0]["id"].get<std::string>() + "`"));
  CHECK(machine.undo({entries[0]["id"].get<std::string>(), "--yes"}) == 0);
  CHECK(fs::exists(machine.at("/first")));
}

TEST_CASE("a file that is by now as undo would leave it is no step, and the change is undone", "[undo]") {
  Machine machine;
  plan::Plan plan;
  plan.add("", "why", plan::File{"/f", std::nullopt, "x", 0644});
  plan.add("", "why", plan::RunTool{{"true"}, {}, true}); // a reload
  const auto id = machine.change(plan, "sharefs write /f");
  fs::remove(machine.at("/f")); // by hand
  CHECK(machine.undo({"--check"}) == 0);
  CHECK(machine.undo({"--yes"}) == 0);
  CHECK(has(machine.err, "there is nothing left to take back of " + id));
  CHECK(machine.undo({"--yes"}) == 0);
  CHECK(has(machine.err, "there is nothing to undo"));

  // Between its steps it is not yet as undo leaves it.
  plan::Plan twice;
  twice.add("", "why", plan::File{"/g", std::nullopt, "x", 0644});
  twice.add("", "why", plan::File{"/g", "x", "y", 0644});
  machine.change(twice, "sharefs write /g");
  std::ofstream(machine.at("/g"), std::ios::trunc) << "x";
  CHECK(machine.undo({"--yes"}) == 0);
  CHECK_FALSE(fs::exists(machine.at("/g")));
}

TEST_CASE("an undo is complete although a user works in a directory that the change made", "[undo]") {
  Machine machine;
  plan::Plan plan;
  plan.add("", "why", plan::make_directory("/d"));
  machine.change(plan, "sharefs make /d");
  std::ofstream(machine.at("/d/data")) << "x";
  CHECK(machine.undo({"--yes"}) == 0);
  CHECK(has(machine.err, "/d: the directory is not empty and stays"));
  CHECK(machine.undo({"--yes"}) == 0);
  CHECK(has(machine.err, "there is nothing to undo"));
  CHECK(fs::exists(machine.at("/d/data")));
}

TEST_CASE("a conflict leaves what somebody else wrote", "[undo]") {
  Machine machine;
  machine.write("/f");
  std::ofstream(machine.at("/f")) << "theirs";
  CHECK(machine.undo({"--yes"}) == 1);
  CHECK(has(machine.err, "/f: expected the content"));
  CHECK(fs::exists(machine.at("/f")));
}

TEST_CASE("what has no way back is said", "[undo]") {
  Machine machine;
  machine.write("/older");
  fs::create_directory(machine.at("/cache"));
  struct stat status{};
  REQUIRE(::stat(machine.at("/cache").c_str(), &status) == 0);
  plan::Plan plan;
  plan.add("", "why", plan::RemoveTree{"/cache", status.st_dev, status.st_ino});
  const auto id = machine.change(plan, "sharefs cache prune");
  CHECK(machine.undo({id, "--yes"}) == 1);
  CHECK(has(machine.err, "nothing of " + id + " (`sharefs cache prune`) can be taken back"));
  CHECK(has(machine.err, "cannot be undone: delete /cache with all in it"));
  CHECK(machine.undo({"--yes"}) == 0);
  CHECK(has(machine.err, "passed over: `sharefs cache prune`"));
  CHECK_FALSE(fs::exists(machine.at("/older")));
}

TEST_CASE("a newest change that cannot be read stops undo, and an older one is taken back by its id", "[undo]") {
  Machine machine;
  const auto older = machine.write("/older");
  const auto newest = machine.write("/newest");
  for (const auto& file : fs::recursive_directory_iterator(machine.at("/")))
    if (file.path().filename() == "plan.json" && file.path().parent_path().filename() == newest)
      std::ofstream(file.path(), std::ios::trunc) << "{";
  CHECK(machine.undo({"--yes"}) == 1);
  CHECK(has(machine.err, "change 2 cannot be read, so nothing older is taken back: its plan.json is cut off"));
  CHECK(has(machine.err, "hint: `sharefs --root " + machine.at("") + " undo --list` shows the older ones"));
  CHECK(fs::exists(machine.at("/older")));
  CHECK(machine.undo({newest, "--yes"}) == 1);
  CHECK(has(machine.err, "change 2 cannot be read: its plan.json is cut off"));
  CHECK(machine.undo({"--list"}) == 0);
  CHECK(has(machine.out, "unreadable"));
  CHECK(machine.undo({older, "--yes"}) == 0);
  CHECK_FALSE(fs::exists(machine.at("/older")));
}

TEST_CASE("two changes within one second are taken back in the order in which they were made", "[undo]") {
  Machine machine;
  machine.write("/f");
  plan::Plan second;
  second.add("", "why", plan::File{"/f", "x", "y", 0644});
  machine.change(second, "sharefs write again");
  CHECK(machine.undo({"--yes"}) == 0);
  CHECK(has(machine.err, "taking back `sharefs write again`"));
  CHECK(fs::exists(machine.at("/f")));
  CHECK(machine.undo({"--yes"}) == 0);
  CHECK_FALSE(fs::exists(machine.at("/f")));
}

TEST_CASE("an undo that was cut off at its very end is marked as done", "[undo]") {
  Machine machine;
  const auto id = machine.write("/f");
  plan::Plan attempt; // what an undo does, without its mark
  attempt.undoes = id;
  attempt.add("", "undo", plan::remove_file("/f", "x"));
  attempt.add("b", "fails", plan::remove_directory("/"));
  machine.change(attempt, "sharefs undo");
  CHECK(machine.undo({"--check"}) == 0);
  CHECK(machine.undo({"--yes"}) == 0);
  CHECK(has(machine.err, "there is nothing left to take back of " + id));
  CHECK(machine.undo({"--yes"}) == 0);
  CHECK(has(machine.err, "there is nothing to undo"));
}

TEST_CASE("the answer no is no error, and changes nothing", "[undo]") {
  Machine machine;
  machine.write("/f");
  machine.typed = "n\n";
  CHECK(machine.undo({}) == 1);
  CHECK(has(machine.err, "Proceed?"));
  CHECK(has(machine.err, "nothing was changed\n"));
  CHECK_FALSE(has(machine.err, "error"));
  CHECK(fs::exists(machine.at("/f")));
  machine.typed = "y\n";
  CHECK(machine.undo({}) == 0);
  CHECK_FALSE(fs::exists(machine.at("/f")));
}

TEST_CASE("a plan that another sharefs has made wrong meanwhile is made again, and needs a new consent", "[execute]") {
  struct Case {
    const char* answers;
    bool begun; ///< the other run began before the plan was made, and ends after it
  };
  for (const auto& [answers, begun] : {Case{"y\ny\n", false}, {"y\nn\n", false}, {"y\ny\n", true}}) {
    Machine machine;
    sys::RealSystem system(machine.at("/"));
    const plan::Journal journal(system.files(),
                                plan::state_directory(system.files(), system.identity(), *system.mounts()));
    plan::Plan others;
    others.add("", "why", plan::File{"/other", std::nullopt, "x", 0644});
    const auto other =
        begun ? journal.begin(others, "sharefs up", system.identity(), system.now(), {0, others.steps[0].action, {}})
              : Result<std::string>("");
    REQUIRE(other);
    std::istringstream in(answers);
    std::ostringstream out;
    std::ostringstream err;
    ui::ConsoleOptions options;
    options.in_terminal = true;
    ui::Console console(in, out, err, options);
    cli::Host host{{}, in, out, err, options, {}, "/"};
    cli::Context context(host, system, console, {}, {"sharefs", "test"});
    int proposed = 0;
    const auto executed = cli::execute(context, [&]() -> Result<cli::Proposal> {
      plan::Plan plan;
      plan.add("", "why", plan::File{proposed == 0 ? "/stale" : "/fresh", std::nullopt, "x", 0644});
      if (++proposed == 1 && begun)
        CHECK(journal.end(*other, {}));
      else if (proposed == 1)
        machine.write("/other"); // between the plan and the lock
      return cli::Proposal{plan, ""};
    });
    REQUIRE(executed);
    CHECK(proposed == 2);
    CHECK_FALSE(fs::exists(machine.at("/stale")));
    CHECK(fs::exists(machine.at("/fresh")) == (answers[2] == 'y'));
    CHECK(executed->stopped() == (answers[2] == 'n'));
    CHECK(has(err.str(), "another sharefs has changed this host meanwhile"));
  }
}
