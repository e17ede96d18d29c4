// Which processes of notes run on this host, and which notes count.
#include "conda/noted_processes.hpp"

#include "conda/staged.hpp"
#include "support/catch.hpp"
#include "support/scripted_system.hpp"
#include "support/temporary_directory.hpp"

#include <fmt/format.h>
#include <unistd.h>

using namespace sharefs;
using namespace sharefs::conda;

namespace {

constexpr std::int64_t k_old = 100 * 86'400;

std::int64_t time_now(sys::System& system) {
  return std::chrono::system_clock::to_time_t(system.now());
}

bool keeps(sys::System& system, const Use& use) {
  return NotedProcesses(system).keeps_generation(use, time_now(system));
}

/// A process of a container: number 900 here, 7 there, with this start time; and process 7 of this host.
struct HostWithContainer {
  test::TemporaryDirectory root;
  test::ScriptedSystem system{root.path()};
  Use use{system.identity().hostname + "+4026532567", 7, 70, 1};

  HostWithContainer() {
    root.write("proc/900/stat", "900 (a python) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 70 0 0\n");
    root.write("proc/900/status", "Name:\ta python\nGroups:\t4 27\nNSpid:\t900\t7\nThreads:\t1\n");
    root.write("proc/7/stat", "7 (sh) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 71 0 0\n");
    root.write("proc/7/status", "Name:\tsh\nNSpid:\t7\n");
    use.uid = ::geteuid();
    use.noted = time_now(system);
  }
};

} // namespace

TEST_CASE("requirement 4: which notes keep a generation", "[conda]") {
  const test::TemporaryDirectory root;
  test::ScriptedSystem system(root.path());
  const auto now = time_now(system);
  Use use{"elsewhere", 7, 70, 1};
  use.noted = now;
  CHECK(keeps(system, use));
  use.noted = now - k_old;
  CHECK_FALSE(keeps(system, use));
  use.noted = now + k_old;
  CHECK_FALSE(keeps(system, use));

  root.write("proc/7/stat", "7 (python) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 70 0 0\n");
  use.host = system.identity().hostname;
  use.uid = ::geteuid();
  CHECK(keeps(system, use)); // runs, and says so itself, however long ago
  use.uid = ::geteuid() + 1; // somebody else's process is named
  CHECK_FALSE(keeps(system, use));
  use.noted = now;
  CHECK(keeps(system, use)); // a server that makes all files one user's
  use.start = 71;
  CHECK_FALSE(keeps(system, use));
}

TEST_CASE("a process that /proc hides has not ended, whoever owns its note", "[conda]") {
  const test::TemporaryDirectory root; // its /proc shows no process
  test::ScriptedSystem system(root.path());
  Use use{system.identity().hostname, ::getpid(), 70, 1};
  use.uid = ::geteuid(); // a server may make all files one user's
  CHECK_FALSE(NotedProcesses(system).find(use));
  use.pid = 4194305; // more than any process has
  CHECK(NotedProcesses(system).find(use) == 0);
  use.uid += 1;
  CHECK(NotedProcesses(system).find(use) == 0);
}

TEST_CASE("a process of a container on this host is known by its numbers there", "[conda]") {
  HostWithContainer host;
  CHECK(NotedProcesses(host.system).find(host.use) == 900);
  auto ended = host.use;
  ended.start = 71; // that of process 7 of this host
  CHECK(NotedProcesses(host.system).is_running(ended) == (::geteuid() == 0 ? std::optional(false) : std::nullopt));
  ended.host = "elsewhere+4026532567";
  CHECK_FALSE(NotedProcesses(host.system).find(ended));
  SECTION("as of this host's own, its note counts however old it is, for its user") {
    host.use.noted -= k_old;
    host.use.uid = host.system.entry({.path = "/proc/900"}).uid;
    CHECK(keeps(host.system, host.use));
    host.use.uid += 1;
    CHECK_FALSE(keeps(host.system, host.use));
  }
  SECTION("what cannot be read may be the process") {
    host.root.write("proc/8/stat", "");
    host.root.write("proc/8/status", "");
    CHECK_FALSE(NotedProcesses(host.system).find(ended = {host.use.host, 9, 90, 1}));
    CHECK(NotedProcesses(host.system).find(host.use) == 900);
  }
  SECTION("in the container") {
    host.system.machine.identity.pid_namespace = "4026532567";
    CHECK(NotedProcesses(host.system).is_running(host.use) == false); // its process 7 has another start time
    ended = {host.system.identity().hostname + "+1", 7, 70, 1};
    CHECK_FALSE(NotedProcesses(host.system).find(ended));
  }
}

TEST_CASE("a staged copy with which a process of a container works stays", "[conda]") {
  HostWithContainer host;
  StagedCopies staged;
  staged.directory.path = "/stage/1000/store/llm";
  SharedEnvironment environment;
  CHECK(busy_copies(host.system, environment, staged).empty());
  host.use.generation = 3;
  SECTION("by its note on the share") {
    environment.uses = {host.use};
    CHECK(busy_copies(host.system, environment, staged) == std::set<std::string>{"0003"});
  }
  SECTION("by its note beside the copy") {
    host.root.write(staged_uses(staged.directory.path).substr(1) + "/" + use_name(host.use), "");
    CHECK(busy_copies(host.system, environment, staged) == std::set<std::string>{"0003"});
  }
}
