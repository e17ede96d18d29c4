#include "base/text.hpp"
#include "journal_entries.hpp"
#include "plan/apply.hpp"
#include "plan/journal.hpp"
#include "support/catch.hpp"
#include "willing_machine.hpp"

#include <csignal>
#include <filesystem>
#include <sys/resource.h>
#include <sys/wait.h>
#include <system_error>
#include <thread>

using namespace sharefs;
using namespace sharefs::plan;
using std::chrono::milliseconds;

namespace {

struct ApplyMachine {
  test::TemporaryRoot root;
  test::ScriptedSystem system{root.path(), test::willing_machine()};
  Journal journal{system.files(), "/state"};

  Report run(const Plan& plan, ApplyOptions options = {}) {
    options.command = "sharefs test";
    return apply(plan, system, journal, options);
  }
};

std::string outcomes(const Report& report) {
  std::string text;
  for (const auto& result : report.results)
    text += to_string(result.outcome)[0];
  return text;
}

RunTool tool(const std::string& name) {
  return RunTool{{name}, {}};
}

} // namespace

TEST_CASE("steps of a group run in order, the empty group before all") {
  ApplyMachine machine;
  Plan plan;
  plan.add("a", "", tool("a1"));
  plan.add("", "", tool("first"));
  plan.add("a", "", tool("a2"));
  plan.add("", "", tool("second"));
  const auto report = machine.run(plan);
  CHECK(outcomes(report) == "dddd");
  CHECK(machine.system.calls() == std::vector<std::string>{"run first", "run second", "run a1", "run a2"});
  CHECK(report.results[2].step == 2);
  CHECK_FALSE(report.interrupted);
}

TEST_CASE("a failure ends its group only") {
  ApplyMachine machine;
  machine.system.machine.on_run = [](const sys::Command& command) {
    return test::exited(command.argv[0] == "bad" ? 1 : 0);
  };
  Plan plan;
  plan.add("", "", tool("bad"));
  plan.add("", "", tool("never"));
  plan.add("a", "", tool("bad"));
  plan.add("b", "", tool("good"));
  plan.add("a", "", tool("never"));
  plan.add("b", "", tool("good"));
  const auto report = machine.run(plan);
  CHECK(outcomes(report) == "fsfdsd");
  CHECK(report.results[0].error->message == "`bad` failed with exit code 1");
  CHECK_FALSE(report.results[1].error);
  CHECK_FALSE(report.ok());
}

TEST_CASE("behind a failure the reload of what was done before it still runs, and no other tool") {
  ApplyMachine machine;
  machine.system.machine.on_run = [](const sys::Command& command) {
    return test::exited(command.argv[0] == "bad" ? 1 : 0);
  };
  const RunTool reload{{"reload"}, {}, true};
  RunTool of_user = reload;
  of_user.actor = Actor{{"alice", 1001, 1001, {1001}, "/home/alice"}, "/home/alice"};
  Plan plan;
  plan.add("a", "", make_directory("/d"));
  plan.add("a", "", tool("bad"));
  plan.add("a", "", of_user);
  plan.add("a", "", tool("never"));
  plan.add("a", "", reload);
  plan.add("b", "", make_directory("/e")); // done already, so there is nothing to put into force
  plan.add("b", "", tool("bad"));
  plan.add("b", "", reload);
  std::filesystem::create_directory(machine.root.path() + "/e");
  CHECK(outcomes(machine.run(plan)) == "dfssdufs");
}

TEST_CASE("groups run at the same time, but no more of them than asked for") {
  ApplyMachine machine;
  std::atomic<int> now{0};
  std::atomic<int> most{0};
  int awaited = 3;
  machine.system.machine.on_run = [&](const sys::Command&) {
    const int running = ++now;
    for (int seen = most; running > seen && !most.compare_exchange_weak(seen, running);)
      ;
    // Until as many as there should be have met, however slow the machine is.
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (most < awaited && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(milliseconds(1));
    --now;
    return test::exited(0);
  };
  Plan plan;
  for (int i = 0; i < 6; ++i)
    plan.add("group " + std::to_string(i), "", tool("t"));
  ApplyOptions options;
  options.parallel = 3;
  CHECK(machine.run(plan, options).ok());
  CHECK(most == 3);
  most = 0;
  awaited = 1;
  options.parallel = 0; // nonsense is one at a time
  CHECK(machine.run(plan, options).ok());
  CHECK(most == 1);
}

TEST_CASE("a group that has used its time begins no further step", "[waits]") {
  ApplyMachine machine;
  machine.system.machine.on_run = [](const sys::Command&) {
    std::this_thread::sleep_for(milliseconds(700));
    return test::exited(0);
  };
  Plan plan;
  plan.add("a", "", tool("slow"));
  plan.add("a", "", tool("late"));
  plan.add("a", "", tool("later"));
  plan.add("b", "", tool("slow"));
  ApplyOptions options;
  options.group_deadline = milliseconds(500);
  const auto report = machine.run(plan, options);
  CHECK(outcomes(report) == "dssd");
  REQUIRE(report.results[1].error);
  CHECK(report.results[1].error->code == ErrorCode::timeout);
  CHECK(report.results[1].error->message ==
        "not begun: the steps before it took longer than " + format_duration(500'000));
}

TEST_CASE("nested targets never run at the same time") {
  ApplyMachine machine;
  Plan plan;
  plan.add("b", "", Mount{"s:/x", "/d", "nfs", ""});
  plan.add("a", "", Mount{"s:/y", "/d/e", "nfs", ""});
  CHECK(machine.run(plan).ok());
  CHECK(machine.system.calls() == std::vector<std::string>{"mount -t nfs s:/x /d", "mount -t nfs s:/y /d/e"});
}

TEST_CASE("what is as it should be leaves no trace in the journal") {
  ApplyMachine machine;
  Plan plan;
  plan.add("", "", File{"/f", std::nullopt, "x", 0644});
  plan.add("", "", make_directory("/d"));
  const auto first = machine.run(plan);
  CHECK(outcomes(first) == "dd");
  CHECK(first.journal_id == "1");
  const auto second = machine.run(plan);
  CHECK(outcomes(second) == "uu");
  CHECK(second.journal_id.empty());
  CHECK(test::entries_of(machine.journal)->size() == 1);
  CHECK(machine.run(Plan{}).ok());
}

TEST_CASE("a change whose end the journal cannot take is done, and said to be missing there") {
  ApplyMachine machine;
  Plan plan;
  plan.add("", "", tool("first"));
  machine.system.machine.on_run = [&](const sys::Command&) {
    std::filesystem::rename(machine.root.path() + "/state", machine.root.path() + "/gone");
    return test::exited(0);
  };
  const auto report = machine.run(plan);
  CHECK(outcomes(report) == "d");
  CHECK(report.ok());
  REQUIRE(report.error);
  CHECK(report.error->message.starts_with("the journal does not say how the change ended: "));
  CHECK(report.error->hint == "`sharefs undo 1` can still take it back");
}

TEST_CASE("an undo that finds nothing to do has no entry that could be named") {
  ApplyMachine machine;
  Plan plan;
  plan.undoes = "7";
  plan.add("", "", remove_directory("/gone"));
  const auto report = machine.run(plan);
  REQUIRE(report.error);
  CHECK(report.journal_id.empty());
  CHECK(report.error->hint == "run the command again");
}

TEST_CASE("without a journal nothing is changed") {
  ApplyMachine machine;
  test::put(machine.root.path() + "/state", "a file is in the way");
  Plan plan;
  plan.add("a", "", File{"/f", std::nullopt, "x", 0644});
  plan.add("b", "", File{"/g", std::nullopt, "x", 0644});
  const auto report = machine.run(plan);
  CHECK(outcomes(report) == "ss"); // no step was at work
  REQUIRE(report.error);
  CHECK(report.error->message.starts_with(
      "the journal cannot be written, so nothing is changed: " + machine.root.path() + "/state"));
  CHECK_FALSE(std::filesystem::exists(machine.root.path() + "/f"));
}

TEST_CASE("the unnamed group of a plan that takes another back runs last, and only if all others succeeded") {
  ApplyMachine machine;
  machine.system.machine.on_run = [](const sys::Command& command) { return test::exited(command.argv[0] == "bad"); };
  Plan plan;
  plan.unnamed_last = true;
  plan.add("", "", tool("last"));
  plan.add("a", "", tool("first"));
  CHECK(outcomes(machine.run(plan)) == "dd");
  CHECK(machine.system.calls() == std::vector<std::string>{"run first", "run last"});
  plan.add("b", "", tool("bad"));
  CHECK(outcomes(machine.run(plan)) == "sdf");
}

TEST_CASE("without another thread to be had, one does it all") {
  ApplyMachine machine;
  Plan plan;
  for (int i = 0; i < 8; ++i)
    plan.add("group " + std::to_string(i), "", tool("t"));
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit none{0, 0}; // no stack of a thread fits: pthread_create(3) fails as without memory or processes
    const rlimit little{64U << 20U, 64U << 20U};
    if (::geteuid() == 0 && ::setuid(54321) != 0)
      ::_exit(9);
    ::setrlimit(RLIMIT_NPROC, &none);
    ::setrlimit(RLIMIT_STACK, &little);
    bool refused = false;
    try {
      std::jthread([] {}).join();
    } catch (const std::system_error&) {
      refused = true;
    }
    const Journal nowhere(machine.system.files(), "/state");
    const auto report = apply(plan, machine.system, nowhere, {});
    ::_exit(refused && report.error ? 0 : 1); // the journal is root's: nothing is begun, and nothing terminates
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("on a disk that is full at any byte of the journal, nothing is done without its intent") {
  for (rlim_t limit = 0; limit < 2000; limit += 37) {
    ApplyMachine machine;
    const pid_t child = ::fork();
    if (child == 0) {
      std::signal(SIGXFSZ, SIG_IGN);
      const rlimit full{limit, limit};
      ::setrlimit(RLIMIT_FSIZE, &full);
      Plan plan;
      plan.add("", "", make_directory("/one"));
      plan.add("", "", make_directory("/two"));
      plan.add("", "", make_directory("/three"));
      machine.run(plan);
      ::_exit(0);
    }
    ::waitpid(child, nullptr, 0);
    const auto entries = test::entries_of(machine.journal);
    REQUIRE(entries);
    const std::array<const char*, 3> paths{"/one", "/two", "/three"};
    for (std::size_t i = 0; i < paths.size(); ++i) {
      CAPTURE(limit, paths[i]);
      if (std::filesystem::exists(machine.root.path() + paths[i])) {
        REQUIRE(entries->size() == 1);
        REQUIRE(entries->front().steps[i].begun);
      }
    }
  }
}

TEST_CASE("the begin of each step is reported, by one thread at a time") {
  ApplyMachine machine;
  Plan plan;
  for (int i = 0; i < 8; ++i)
    plan.add("group " + std::to_string(i), "", tool("t"));
  std::vector<std::string> begun; // not guarded: apply must do it
  ApplyOptions options;
  options.begins = [&begun](const Step& step) { begun.push_back(step.group); };
  CHECK(machine.run(plan, options).ok());
  CHECK(begun.size() == 8);
  CHECK(std::find(begun.begin(), begun.end(), "group 3") != begun.end());
}

TEST_CASE("what comes before the groups may be interrupted, and no step is to blame") {
  ApplyMachine machine;
  Plan plan;
  plan.add("", "", tool("first"));
  plan.add("a", "", tool("a1"));
  ApplyOptions options;
  options.before_groups = []() -> Result<void> { return fail(ErrorCode::interrupted, "interrupted"); };
  const auto report = machine.run(plan, options);
  CHECK(report.interrupted);
  CHECK(outcomes(report) == "ds");
}

TEST_CASE("an error before the groups is the run's own, and no step was at work") {
  ApplyMachine machine;
  Plan plan;
  plan.add("", "", tool("first"));
  plan.add("a", "", tool("a1"));
  plan.add("b", "", tool("b1"));
  ApplyOptions options;
  options.before_groups = []() -> Result<void> { return fail(ErrorCode::failed, "there is no room"); };
  const auto report = machine.run(plan, options);
  CHECK(outcomes(report) == "dss");
  CHECK_FALSE(report.ok());
  REQUIRE(report.error);
  CHECK(report.error->message == "there is no room");
  CHECK(std::ranges::none_of(report.results, [](const StepResult& result) { return result.error.has_value(); }));
}

TEST_CASE(
    "SIGINT that ends the program of the last step, too, has interrupted the plan; one that comes too late has not") {
  const int exit_code = GENERATE(0, 1);
  ApplyMachine machine;
  Plan plan;
  plan.add("", "", tool("ended by it"));
  machine.system.machine.on_run = [exit_code](const sys::Command&) {
    ::raise(SIGINT);
    return test::exited(exit_code);
  };
  const pid_t child = ::fork();
  if (child == 0) {
    install_interrupt_handlers();
    ::_exit(machine.run(plan).interrupted ? 130 : 0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == (exit_code == 0 ? 0 : 130));
}

TEST_CASE("SIGINT lets the running step end and leaves the rest; a second one ends the process") {
  const int twice = GENERATE(0, 1);
  ApplyMachine machine;
  Plan plan;
  plan.add("", "", File{"/one", std::nullopt, "x", 0644});
  plan.add("", "", tool("interrupted"));
  plan.add("", "", File{"/two", std::nullopt, "x", 0644});
  machine.system.machine.on_run = [twice](const sys::Command&) {
    ::raise(SIGINT);
    if (twice != 0)
      ::raise(SIGINT);
    return test::exited(0);
  };
  const pid_t child = ::fork(); // the flag is for the life of a process
  if (child == 0) {
    std::signal(SIGHUP, SIG_IGN);
    install_interrupt_handlers();
    ::raise(SIGHUP); // as under nohup(1): still ignored
    if (interrupted())
      ::_exit(1);
    const auto report = machine.run(plan);
    ::_exit(report.interrupted && outcomes(report) == "dds" ? 0 : 2);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == (twice != 0 ? 130 : 0));
  CHECK(std::filesystem::exists(machine.root.path() + "/one"));
  CHECK_FALSE(std::filesystem::exists(machine.root.path() + "/two"));
  const auto entries = test::entries_of(machine.journal);
  REQUIRE(entries);
  REQUIRE(entries->size() == 1);
  CHECK(entries->front().state == (twice != 0 ? JournalState::unfinished : JournalState::failed));
}
