// One holder among many: processes of this test stand for hosts, each with a scripted name.
#include "base/json_fields.hpp"
#include "support/catch.hpp"
#include "support/scripted_system.hpp"
#include "support/temporary_directory.hpp"
#include "sys/find_processes.hpp"
#include "sys/leases/lease.hpp"

#include <array>
#include <csignal>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>

using namespace sharefs;
using namespace sharefs::sys;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

test::Machine machine_named(const std::string& host) {
  test::Machine machine;
  machine.identity.hostname = host;
  machine.identity.boot_id = "boot-of-" + host;
  machine.identity.user = "alice";
  machine.identity.pid = ::getpid();
  return machine;
}

std::string content(const LeaseHolder& holder) {
  return json_of(holder, JsonTexts::exact).dump() + "\n";
}

struct LeasePlace {
  test::TemporaryDirectory directory;
  test::ScriptedSystem system{"/", machine_named("node1")};
  LeaseRequest request{
      .path = directory / "lock", .what = "conda update llm", .touch_every = 20ms, .expires_after = 60s};

  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& one : fs::directory_iterator(directory.path()))
      found.push_back(one.path().filename());
    return found;
  }
};

/// A child that does `work` and then waits to be killed; returns when it has said that it is ready.
template <class Work> pid_t holder(const Work& work) {
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto held = work();
    const char sign = held ? 'y' : 'n';
    [[maybe_unused]] const ssize_t written = ::write(ready[1], &sign, 1);
    for (;;)
      ::pause();
  }
  char sign = 0;
  REQUIRE(::read(ready[0], &sign, 1) == 1);
  CHECK(sign == 'y');
  ::close(ready[0]);
  ::close(ready[1]);
  return child;
}

void kill_and_wait(pid_t child) {
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

/// From here on the server goes away whenever a name is asked for its status.
bool lose_status_of_names() {
#ifdef SYS_newfstatat
  constexpr unsigned k_flags = offsetof(seccomp_data, args) + 3 * sizeof(std::uint64_t);
  std::array<sock_filter, 6> filter{{{BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
                                     {BPF_JMP | BPF_JEQ | BPF_K, 0, 3, SYS_newfstatat},
                                     {BPF_LD | BPF_W | BPF_ABS, 0, 0, k_flags},
                                     {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, AT_SYMLINK_NOFOLLOW},
                                     {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | ESTALE},
                                     {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}}};
  const sock_fprog program{filter.size(), filter.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
#else
  return false;
#endif
}

} // namespace

TEST_CASE("a lease of which only the name is known is given up at once, and blocks nobody") {
  const LeasePlace place;
  const pid_t taker = ::fork();
  if (taker == 0) {
    test::ScriptedSystem system("/", machine_named("node1"));
    if (!lose_status_of_names())
      ::_exit(0);
    const auto lease = Lease::take(system, place.request);
    ::_exit(!lease && lease.error().message.find("lock: Stale file handle") != std::string::npos ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(taker, &status, 0) == taker);
  CHECK(status == 0);
  CHECK(place.names().empty());
}

TEST_CASE("what a lease says is read as it was written, and nothing else is") {
  const LeaseHolder holder{"node1", "boot", 12, 34, "alice", 56, "conda update llm"};
  CHECK(from_json<LeaseHolder>(content(holder), 4096) == holder);
  CHECK(holder.text() == "alice on node1 (process 12, `conda update llm`)");
  for (const auto* wrong : {"", "sharefs lease 1\na\nb\n1\n2\nc\n3\nd\n", "[]", "{\"pid\": -1}", "{\"host\": 1}"})
    CHECK_FALSE(from_json<LeaseHolder>(wrong, 4096));
}

TEST_CASE("start times of processes") {
  CHECK(process_start(Files(), ::getpid()) > 0U);
  CHECK_FALSE(process_start(Files(), 0));
  CHECK_FALSE(process_start(Files(), 4194305));
}

TEST_CASE("requirement 8: the second taker hears who the first is, and nothing is left behind") {
  LeasePlace place;
  {
    auto first = Lease::take(place.system, place.request);
    REQUIRE(first);
    CHECK(first->check());
    test::ScriptedSystem other("/", machine_named("node2"));
    const auto second = Lease::take(other, place.request);
    REQUIRE_FALSE(second);
    CHECK(second.error().code == ErrorCode::busy);
    CHECK(second.error().message.find("alice on node1") != std::string::npos);
    CHECK(first->check());
  }
  CHECK(place.names().empty());
  CHECK(Lease::take(place.system, place.request));
}

TEST_CASE("requirement 8: who waits gets it when the first lets go", "[waits]") {
  LeasePlace place;
  std::optional<Lease> first;
  {
    auto taken = Lease::take(place.system, place.request);
    REQUIRE(taken);
    first.emplace(std::move(*taken));
  }
  auto request = place.request;
  request.wait = 30s;
  test::ScriptedSystem other("/", machine_named("node2"));
  const auto second = Lease::take(other, request, [&](const LeaseHolder& holder) {
    CHECK(holder.host == "node1");
    first.reset();
  });
  REQUIRE(second);
}

TEST_CASE("requirement 8: a holder of this host that was killed is succeeded at once", "[kill]") {
  LeasePlace place;
  const auto child = holder([&] {
    auto system = std::make_unique<test::ScriptedSystem>("/", machine_named("node1"));
    static auto held = Lease::take(*system, place.request);
    return held.has_value();
  });
  CHECK(Lease::take(place.system, place.request).error().code == ErrorCode::busy);
  kill_and_wait(child);
  auto request = place.request;
  request.wait = 30s; // its keeper may take a moment to notice
  CHECK(Lease::take(place.system, request));
}

TEST_CASE("requirement 8: a holder of another host that is out of reach is succeeded after a while", "[kill][waits]") {
  LeasePlace place;
  place.directory.write("lock", content({"node9", "its-boot", 1, 1, "bob", 0, "conda gc llm"}));
  CHECK(Lease::take(place.system, place.request).error().code == ErrorCode::busy);
  auto request = place.request;
  request.wait = 30s;
  request.expires_after = 400ms;
  const auto taken = Lease::take(place.system, request);
  REQUIRE(taken);
  CHECK(place.names() == std::vector<std::string>{"lock"});
}

TEST_CASE("a holder with this host's name and another boot may be a host that was cloned from this one", "[kill]") {
  LeasePlace place;
  place.directory.write("lock", content({"node1", "another-boot", 1, 1, "bob", 0, "conda gc llm"}));
  CHECK(Lease::take(place.system, place.request).error().code == ErrorCode::busy);
  fs::last_write_time(place.directory / "lock", fs::file_time_type::clock::now() - place.request.expires_after);
  CHECK(Lease::take(place.system, place.request));
}

TEST_CASE("a holder in another PID namespace is alive, although this one has no such process", "[kill]") {
  LeasePlace place;
  const LeaseHolder in_container{"node1", "boot-of-node1+4026532567", 1, 1, "bob", 0, "conda gc llm"};
  place.directory.write("lock", content(in_container));
  CHECK(Lease::take(place.system, place.request).error().code == ErrorCode::busy);
  fs::remove(place.directory / "lock");
  place.system.machine.identity.pid_namespace = "4026532567";
  place.directory.write("lock", content({"node1", "boot-of-node1", 1, 1, "bob", 0, "conda gc llm"}));
  CHECK(Lease::take(place.system, place.request).error().code == ErrorCode::busy);
  place.directory.write("lock", content(in_container)); // process 1 is not the one that began at tick 1
  CHECK(Lease::take(place.system, place.request));
}

TEST_CASE("attack: a holder that /proc hides is alive, and one that has ended is succeeded at once", "[kill]") {
  const test::TemporaryDirectory root; // its /proc shows no process, as hidepid does for those of other users
  test::ScriptedSystem system(root.path(), machine_named("node1"));
  const LeaseRequest request{.path = "/lock", .what = "conda update llm"};
  root.write("lock", content({"node1", "boot-of-node1", ::getpid(), 1, "bob", 0, "conda gc llm"}));
  CHECK(Lease::take(system, request).error().code == ErrorCode::busy);
  fs::last_write_time(root / "lock", fs::file_time_type::clock::now() - request.expires_after);
  CHECK(Lease::take(system, request));
  root.write("lock", content({"node1", "boot-of-node1", 4194305, 1, "bob", 0, "conda gc llm"}));
  CHECK(Lease::take(system, request));
}

TEST_CASE("a link in the place of a lease is named, with the cure") {
  LeasePlace place;
  fs::create_symlink("/etc/passwd", place.directory / "lock");
  const auto refused = Lease::take(place.system, place.request);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message == place.request.path + ": is a symbolic link, which no command of sharefs has made");
  CHECK(refused.error().hint.find("remove it") != std::string::npos);
  CHECK(place.names() == std::vector<std::string>{"lock"});
}

TEST_CASE("a holder whose file was taken away is told") {
  LeasePlace place;
  auto taken = Lease::take(place.system, place.request);
  REQUIRE(taken);
  std::optional<Lease> lease(std::move(*taken));
  place.directory.write("other", "of somebody else"); // made before ours goes: another inode
  fs::rename(place.directory / "other", place.directory / "lock");
  CHECK(lease->check().error().code == ErrorCode::conflict);
  lease.reset();
  CHECK(place.directory.read("lock") == "of somebody else");
}

TEST_CASE("requirement 8: a file that cannot be read for a while stays ours", "[waits]") {
  LeasePlace place;
  auto taken = Lease::take(place.system, place.request);
  REQUIRE(taken);
  std::optional<Lease> lease(std::move(*taken));
  fs::rename(place.directory / "lock", place.directory / "aside");
  fs::create_symlink("aside", place.directory / "lock"); // ELOOP, as a disk may say EIO
  CHECK(lease->check().error().code == ErrorCode::failed);
  CHECK(lease->check().error().message.starts_with(place.directory / "lock"));
  std::this_thread::sleep_for(10 * place.request.touch_every);
  fs::rename(place.directory / "aside", place.directory / "lock");
  CHECK(lease->check());
  lease.reset();
  CHECK(place.names().empty());
}

TEST_CASE("requirement 8: of many takers one at a time has it", "[kill][waits]") {
  LeasePlace place;
  constexpr int k_takers = 8, k_turns = 5;
  std::vector<pid_t> takers;
  for (int taker = 0; taker < k_takers; ++taker) {
    const pid_t child = ::fork();
    if (child != 0) {
      takers.push_back(child);
      continue;
    }
    test::ScriptedSystem system("/", machine_named("node" + std::to_string(taker)));
    auto request = place.request;
    request.wait = 60s;
    for (int turn = 0; turn < k_turns; ++turn) {
      const auto lease = Lease::take(system, request);
      // mkdir(2) succeeds for one only
      if (!lease || ::mkdir((place.directory / "inside").c_str(), 0700) != 0 ||
          ::rmdir((place.directory / "inside").c_str()) != 0)
        ::_exit(1);
    }
    ::_exit(0);
  }
  for (const pid_t child : takers) {
    int status = 0;
    ::waitpid(child, &status, 0);
    CHECK(status == 0);
  }
  CHECK(place.names().empty());
}
