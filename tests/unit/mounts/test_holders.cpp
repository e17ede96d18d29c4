#include "mounts/holders.hpp"
#include "samples.hpp"
#include "support/catch.hpp"

#include <algorithm>

using namespace sharefs;
using namespace sharefs::mounts;
using test::answered;

namespace {

ProcessFacts process(int pid, std::vector<std::pair<std::string, std::string>> links, const std::string& maps = "",
                     std::string space = "mnt:[1]") {
  return {pid, "python", std::move(space), "", std::move(links), mapped_files(maps)};
}

const auto k_mount = test::entry(test::k_v42_super);

} // namespace

TEST_CASE("who uses a mount") {
  const std::vector<ProcessFacts> processes{
      process(1, {{"cwd", "/"}, {"root", "/"}, {"exe", "/usr/bin/x"}}),
      process(2, {{"cwd", "/data/share"}}),
      process(3, {{"cwd", "/data/shared"}}), // only the same beginning
      process(4, {{"fd 3", "/data/share/a file (deleted)"}, {"fd 4", "socket:[7]"}}),
      process(5, {},
              "7f00-7f01 r-xp 00000000 00:2a 12   /data/share/lib.so\n7f02-7f03 rw-p 0 00:00 0 \n"
              "7f04-7f05 r--p 0 00:2a 12   /data/share/other.so\n"),
      process(6, {{"cwd", "/data/share"}}, "", "mnt:[2]"), // another namespace: its /data/share is not ours
  };
  const auto found = holders_of({"/data/share"}, processes, "mnt:[1]");
  REQUIRE(found.size() == 1);
  const auto& holders = found.at("/data/share");
  REQUIRE(holders.size() == 3);
  CHECK(holders[0] == Holder{2, "python", {"cwd /data/share"}});
  CHECK(holders[1] == Holder{4, "python", {"fd 3 /data/share/a file (deleted)"}});
  CHECK(holders[2] == Holder{5, "python", {"mapped /data/share/lib.so"}});
}

TEST_CASE("a use of an inner mount is one of the outer mount too") {
  const auto found =
      holders_of({"/data", "/data/share"}, {process(1, {{"cwd", "/data/share/x"}, {"exe", ""}})}, "mnt:[1]");
  CHECK(found.at("/data") == std::vector<Holder>{{1, "python", {"cwd /data/share/x"}}});
  CHECK(found.at("/data/share") == found.at("/data"));
}

TEST_CASE("lines for a person are bounded") {
  HolderReport report;
  for (int pid = 1; pid <= 12; ++pid)
    report.holders.push_back({pid, "bash", {"cwd /data/share", "fd 3 /data/share/x"}});
  const auto lines = describe(report, 10);
  REQUIRE(lines.size() == 11);
  CHECK(lines[0] == "pid 1 (bash): cwd /data/share, fd 3 /data/share/x");
  CHECK(lines[10] == "and 2 more");
}

TEST_CASE("a scan of /proc that survives a process that hangs") {
  test::ScriptedSystem system;
  test::add_directory(system, "/proc", {"2", "3", "self"});
  test::add_link(system, "/proc/self/ns/mnt", "mnt:[1]");
  for (const std::string pid : {"2", "3"}) {
    const auto directory = "/proc/" + pid;
    test::add_file(system, directory + "/comm", "python\n");
    test::add_link(system, directory + "/ns/mnt", pid == "2" ? "mnt:[1]" : "mnt:[2]");
    test::add_link(system, directory + "/cwd", "/");
    test::add_directory(system, directory + "/fd", {"5"});
    test::add_link(system, directory + "/fd/5", "/data/share/log");
    test::add_file(system, directory + "/maps", "");
  }
  auto mount = k_mount;
  mount.major = 0;
  mount.minor = 90;
  test::add_file(system, "/proc/3/mountinfo",
                 test::k_root_line + test::nfs_line(50, 1, "/other", "storage1:/mnt/share"));
  system.machine.entries["/proc/2/maps"] = answered(ETIMEDOUT);
  test::add_directory(system, "/proc", {"2", "3", "99", "self"});
  system.machine.identity.pid = 99; // sharefs itself is never a holder
  test::add_directory(system, "/proc/99/fd", {"3"});
  test::add_link(system, "/proc/99/ns/mnt", "mnt:[1]");
  test::add_link(system, "/proc/99/cwd", "/data/share");
  const auto reports = find_holders(system, {mount}, std::chrono::seconds(1));
  const auto& report = reports.at("/data/share");
  REQUIRE(report.holders.size() == 1);
  CHECK(report.holders[0] == Holder{2, "python", {"fd 5 /data/share/log"}});
  REQUIRE(report.namespaces.size() == 1); // 0:90 is mounted there too
  CHECK(report.namespaces[0].pid == 3);
  REQUIRE(report.gaps.size() == 1);
  CHECK(report.gaps[0].find("/proc/2/maps") != std::string::npos);
  for (const auto& path : system.asked())
    CHECK(path.find("cmdline") == std::string::npos);
}

TEST_CASE("processes in the middle of a request are reported, kernel threads are not") {
  auto hanging = process(1, {{"cwd", "/"}, {"exe", "/bin/ls"}});
  auto kernel = process(2, {{"cwd", "/"}, {"exe", ""}});
  auto idle = process(3, {{"cwd", "/"}, {"exe", "/bin/ls"}});
  auto container = process(4, {{"exe", "/bin/ls"}}, "", "mnt:[2]");
  hanging.waits_in = kernel.waits_in = container.waits_in = "rpc_wait_bit_killable";
  idle.waits_in = "do_wait";
  const auto waiting = find_waiting({hanging, kernel, idle, container}, "mnt:[1]");
  REQUIRE(waiting.size() == 1);
  CHECK(waiting[0].pid == 1);
}
