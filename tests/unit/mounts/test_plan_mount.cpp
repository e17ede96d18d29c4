#include "mounts/plan_mount.hpp"
#include "samples.hpp"
#include "support/catch.hpp"

#include <algorithm>

using namespace sharefs;
using namespace sharefs::mounts;
using test::answered;
using test::has_code;
using test::nfs_line;
using test::ScriptedSystem;
using test::share;

namespace {

/// A machine with a good server of everything that the requests want, and /data.
MountPlan plan_on(ScriptedSystem& system, const std::vector<MountPoint>& wanted) {
  test::leave_rest_missing(system);
  if (system.machine.nfs.empty()) {
    std::vector<std::string> paths;
    for (const auto& one : wanted)
      paths.push_back(one.path);
    system.machine.nfs["storage1"] = test::good_server(paths);
  }
  ProbeRequest request;
  request.wanted = wanted;
  request.want_access = request.targets = true;
  const auto seen = probe(system, request);
  REQUIRE(seen.has_value());
  return plan_mounts(*seen);
}

std::vector<std::string> described(const plan::Plan& plan) {
  std::vector<std::string> lines;
  for (const auto& step : plan.steps)
    lines.push_back(step.group + ": " + plan::describe(step.action));
  return lines;
}

} // namespace

TEST_CASE("a missing mount gets its directories and its mount") {
  ScriptedSystem system;
  system.machine.entries["/data/share"] = test::missing_below("/");
  const auto plan = plan_on(system, {share()});
  CHECK(described(plan.plan) == std::vector<std::string>{": make directory /data",
                                                         "/data/share: make directory /data/share",
                                                         "/data/share: mount storage1:/mnt/share on /data/share"});
  const auto& mount = std::get<plan::Mount>(plan.plan.steps[2].action);
  CHECK(mount.options == "rw,hard,nosuid,nodev,vers=4.2,proto=tcp,nconnect=4");
  CHECK(mount.fs_type == "nfs");
  CHECK(plan.planned == std::vector<std::string>{"/data/share"});
  CHECK(plan.diagnoses.empty());
  CHECK(plan.plan.notes.empty());
}

TEST_CASE("a right mount is left alone") {
  ScriptedSystem system;
  system.machine.mounts = test::table_of(nfs_line(50, 1, "/data/share", "storage1:/mnt/share"));
  system.machine.entries["/data/share"] = answered(0);
  const auto plan = plan_on(system, {share()});
  CHECK(plan.plan.empty());
  CHECK(plan.right == std::vector<std::string>{"/data/share"});
  CHECK(plan.blocked.empty());
}

TEST_CASE("wrong mounts are told and not touched") {
  struct Row {
    std::string line;
    int health;
    const char* code;
  };
  const auto row = GENERATE(values<Row>({
      {nfs_line(50, 1, "/data/share", "storage1:/mnt/other"), 0, "SF208"},
      {"50 1 8:2 / /data/share rw - ext4 /dev/sdb1 rw\n", 0, "SF208"},
      {nfs_line(50, 1, "/data/share", "storage1:/mnt/share", "rw,vers=3,hard"), 0, "SF209"},
      {nfs_line(50, 1, "/data/share", "storage1:/mnt/share"), ESTALE, "SF211"},
      {nfs_line(50, 1, "/data/share", "storage1:/mnt/share"), ETIMEDOUT, "SF213"},
      {nfs_line(50, 1, "/data/share", "storage1:/mnt/share"), EACCES, "SF215"},
  }));
  CAPTURE(row.code);
  ScriptedSystem system;
  system.machine.mounts = test::table_of(row.line);
  system.machine.entries["/data/share"] = answered(row.health);
  const auto plan = plan_on(system, {share()});
  CHECK(plan.plan.empty());
  CHECK(plan.blocked == std::vector<std::string>{"/data/share"});
  CHECK(has_code(plan.diagnoses, row.code));
}

TEST_CASE("mount.nfs is never started for a dead server") {
  ScriptedSystem system;
  system.machine.nfs["storage1"] = test::dead_server();
  const auto plan = plan_on(system, {share()});
  CHECK(plan.plan.empty());
  CHECK(has_code(plan.diagnoses, "SF201"));
  CHECK(plan.blocked.size() == 1);
}

TEST_CASE("one dead server does not keep the others") {
  ScriptedSystem system;
  auto other = share("other", "/data/other");
  other.server = "storage2";
  system.machine.nfs["storage1"] = test::good_server();
  system.machine.nfs["storage2"] = test::dead_server();
  const auto plan = plan_on(system, {other, share()});
  CHECK(plan.planned == std::vector<std::string>{"/data/share"});
  CHECK(plan.blocked == std::vector<std::string>{"/data/other"});
}

TEST_CASE("mounts side by side run in groups of their own") {
  ScriptedSystem system;
  for (const auto* target : {"/data/a", "/data/b"})
    system.machine.entries[target] = test::missing_below("/");
  const auto plan = plan_on(system, {share("a", "/data/a"), share("b", "/data/b")});
  CHECK(described(plan.plan) == std::vector<std::string>{": make directory /data", "/data/a: make directory /data/a",
                                                         "/data/a: mount storage1:/mnt/a on /data/a",
                                                         "/data/b: make directory /data/b",
                                                         "/data/b: mount storage1:/mnt/b on /data/b"});
}

TEST_CASE("a mount inside another comes after it, in one group, with its directory made there") {
  ScriptedSystem system;
  test::add_directory(system, "/data");
  test::add_directory(system, "/data/sub"); // the local one, which the outer mount hides
  const auto plan = plan_on(system, {share("inner", "/data/sub/x"), share("outer", "/data")});
  CHECK(described(plan.plan) == std::vector<std::string>{"/data: mount storage1:/mnt/outer on /data",
                                                         "/data: make directory /data/sub",
                                                         "/data: make directory /data/sub/x",
                                                         "/data: mount storage1:/mnt/inner on /data/sub/x"});
}

TEST_CASE("a mount inside one that cannot be made waits for it") {
  ScriptedSystem system;
  auto outer = share("outer", "/data");
  outer.server = "storage2";
  system.machine.nfs["storage1"] = test::good_server({"/mnt/inner"});
  system.machine.nfs["storage2"] = test::dead_server();
  const auto plan = plan_on(system, {share("inner", "/data/sub"), outer});
  CHECK(plan.plan.empty());
  CHECK(has_code(plan.diagnoses, "SF222"));
  CHECK(plan.blocked.size() == 2);
}

TEST_CASE("an outer mount never hides an inner one that is there") {
  ScriptedSystem system;
  system.machine.mounts = test::table_of(nfs_line(50, 1, "/data/sub", "storage1:/mnt/inner"));
  test::add_directory(system, "/data");
  const auto plan = plan_on(system, {share("outer", "/data")});
  CHECK(plan.plan.empty());
  CHECK(has_code(plan.diagnoses, "SF222"));
}

TEST_CASE("two shares of one mount point") {
  ScriptedSystem system;
  const auto plan = plan_on(system, {share("a", "/data/a"), share("b", "/data/a")});
  CHECK(has_code(plan.diagnoses, "SF222"));
  CHECK(plan.planned.size() == 1);
}

TEST_CASE("mount points that cannot serve") {
  ScriptedSystem system;
  SECTION("a link") {
    test::add_link(system, "/data/share", "/mnt/data");
  }
  SECTION("a link on the way") { // Links::none
    system.machine.entries["/data/share"] = answered(EPERM);
  }
  SECTION("a file") {
    test::add_file(system, "/data/share", "");
  }
  SECTION("a file on the way") {
    system.machine.entries["/data/share"] = test::missing_below("/");
    system.machine.entries["/data/share"].error_number = ENOTDIR;
  }
  const auto plan = plan_on(system, {share()});
  CHECK(plan.plan.empty());
  CHECK(has_code(plan.diagnoses, "SF221"));
}

TEST_CASE("a directory that is not empty gets a warning") {
  ScriptedSystem system;
  test::add_directory(system, "/data", {"share"});
  test::add_directory(system, "/data/share", {"old"});
  const auto plan = plan_on(system, {share()});
  CHECK(plan.planned.size() == 1);
  CHECK(has_code(plan.diagnoses, "SF210"));
  CHECK_FALSE(has_errors(plan.diagnoses));
}

TEST_CASE("a background mount is told and not stacked") {
  ScriptedSystem system;
  test::add_directory(system, "/proc", {"77"});
  test::add_link(system, "/proc/self/ns/mnt", "mnt:[1]");
  test::add_link(system, "/proc/77/ns/mnt", "mnt:[1]");
  test::add_file(system, "/proc/77/comm", "mount.nfs\n");
  test::add_file(system, "/proc/77/cmdline", std::string("mount.nfs\0storage1:/mnt/share\0/data/share\0-obg\0", 47));
  const auto plan = plan_on(system, {share()});
  CHECK(plan.plan.empty());
  REQUIRE(has_code(plan.diagnoses, "SF218"));
  CHECK(plan.diagnoses[0].hint.find("kill 77") != std::string::npos);
}

TEST_CASE("wrong options of the person forbid the mount") {
  ScriptedSystem system;
  auto request = share();
  request.options = parse_options({"hard,soft"});
  const auto plan = plan_on(system, {request});
  CHECK(plan.plan.empty());
  CHECK(has_code(plan.diagnoses, "SF206"));
}

TEST_CASE("the recipe's consequences are in the notes") {
  ScriptedSystem system;
  auto request = share();
  request.profile = "recipe";
  const auto plan = plan_on(system, {request});
  CHECK(plan.plan.notes.size() == 4);
  CHECK(std::get<plan::Mount>(plan.plan.steps.back().action).options == "rw,bg,soft,nolock");
}

TEST_CASE("where a mount is to come back at boot, nobody writes below it meanwhile") {
  ScriptedSystem system;
  auto request = share();
  request.boot = BootWay::automatic;
  const auto plan = plan_on(system, {request});
  REQUIRE(plan.plan.steps.size() == 3);
  CHECK(plan.plan.steps[1].action == plan::Action(plan::SetImmutable{"/data/share"}));
  CHECK(std::holds_alternative<plan::Mount>(plan.plan.steps[2].action));

  // Files of this host that lie there are used, and are left to their owners.
  system.machine.entries["/data/share"] = test::answered();
  system.machine.entries["/data/share"].names = {"notes"};
  const auto over_files = plan_on(system, {request});
  REQUIRE(over_files.plan.steps.size() == 1);
  CHECK(std::holds_alternative<plan::Mount>(over_files.plan.steps[0].action));
  system.machine.entries.erase("/data/share");

  // On another share there is no such flag, and root may be nobody.
  system.machine.mounts = test::table_of(nfs_line(50, 1, "/data", "storage1:/mnt/outer"));
  const auto inner = plan_on(system, {request});
  REQUIRE(inner.plan.steps.size() == 2);
  CHECK(std::holds_alternative<plan::Mount>(inner.plan.steps[1].action));
}

TEST_CASE("rights of a mount in use are changed in place when asked for; nothing else can be") {
  ScriptedSystem system;
  system.machine.mounts = test::table_of(nfs_line(50, 1, "/data/share", "storage1:/mnt/share"));
  test::leave_rest_missing(system);
  system.machine.nfs["storage1"] = test::good_server();
  const auto plan_for = [&](const std::string& options, bool remount) {
    system.machine.entries["/data/share"] = test::answered();
    ProbeRequest request;
    auto point = share();
    point.options = parse_options({options});
    request.wanted = {point};
    const auto seen = probe(system, request);
    REQUIRE(seen);
    return plan_mounts(*seen, remount);
  };
  const auto refused = plan_for("ro,suid", false);
  CHECK(refused.plan.empty());
  REQUIRE(refused.diagnoses.size() == 1);
  CHECK(refused.diagnoses[0].hint == "`sharefs mount share --remount` changes it in place");

  const auto changed = plan_for("ro,suid", true);
  CHECK(changed.diagnoses.empty());
  CHECK(changed.planned == std::vector<std::string>{"/data/share"});
  REQUIRE(changed.plan.steps.size() == 1);
  CHECK(changed.plan.steps[0].action == plan::Action(plan::Remount{"/data/share", "nosuid,nodev", "ro,nodev"}));

  CHECK(plan_for("", true).plan.empty());
  const auto other = plan_for("ro,soft", true); // soft is the superblock's, for good
  CHECK(other.plan.empty());
  CHECK(has_code(other.diagnoses, "SF209"));
}

TEST_CASE("a dead server is told once, with all that it keeps away") {
  ScriptedSystem system;
  system.machine.nfs["storage1"] = test::dead_server();
  const auto plan = plan_on(system, {share("a", "/data/a"), share("b", "/data/b")});
  REQUIRE(plan.diagnoses.size() == 1);
  CHECK(plan.diagnoses[0].subject == "a, b");
  CHECK(plan.blocked.size() == 2);
}

TEST_CASE("nconnect that an earlier mount decided is no matter of mount") {
  ScriptedSystem system;
  system.machine.mounts = test::table_of(
      nfs_line(50, 1, "/data/share", "storage1:/mnt/share", "rw,vers=4.2,hard,proto=tcp", "rw,nosuid,nodev,relatime"));
  system.machine.entries["/data/share"] = answered(0);
  const auto plan = plan_on(system, {share()});
  CHECK(plan.right.size() == 1);
  CHECK(plan.diagnoses.empty());
}
