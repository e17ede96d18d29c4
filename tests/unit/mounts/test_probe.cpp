#include "mounts/plan_mount.hpp"
#include "mounts/probe.hpp"
#include "samples.hpp"
#include "support/catch.hpp"

#include <algorithm>

using namespace sharefs;
using namespace sharefs::mounts;
using test::answered;
using test::nfs_line;
using test::ScriptedSystem;
using test::share;

namespace {

ProbeRequest wants(std::vector<MountPoint> requests, bool others = false) {
  ProbeRequest request;
  request.wanted = std::move(requests);
  request.targets = true;
  request.others = others;
  return request;
}

} // namespace

TEST_CASE("a mount that is there is probed with the options of its server's version") {
  ScriptedSystem system;
  system.machine.mounts = test::table_of(
      nfs_line(50, 1, "/data/share", "storage1:/mnt/share", test::k_v42_super, "rw,nosuid,nodev,relatime"));
  system.machine.nfs["storage1"] = test::good_server();
  system.machine.entries["/data/share"] = answered(0);
  const auto seen = probe(system, wants({share()}));
  REQUIRE(seen.has_value());
  REQUIRE(seen->states.size() == 1);
  CHECK(seen->states[0].health == Health::healthy);
  CHECK(seen->states[0].right());
  CHECK(seen->states[0].point.options.size() == 7);
  CHECK(seen->server({.server = "storage1"}) != nullptr);
}

TEST_CASE("the directory of a missing mount is read") {
  ScriptedSystem system;
  system.machine.mounts = test::table_of("");
  system.machine.nfs["storage1"] = test::dead_server();
  system.machine.entries["/data/share"] = test::missing_below("/data");
  const auto seen = probe(system, wants({share()}));
  REQUIRE(seen.has_value());
  CHECK(seen->states[0].health == Health::missing);
  CHECK(seen->states[0].answer.value().ancestor == "/data");
}

TEST_CASE("a target on a hung mount") {
  ScriptedSystem system;
  system.machine.mounts = test::table_of(nfs_line(50, 1, "/data", "storage1:/mnt/data"));
  system.machine.entries["/data"] = answered(ETIMEDOUT);
  const auto seen = probe(system, wants({share()}));
  REQUIRE(seen.has_value());
  CHECK(seen->states[0].answer.value().hung());
  CHECK(seen->states[0].answer.value().mount == "/data");
}

TEST_CASE("an automounter is never woken") {
  ScriptedSystem system;
  system.machine.mounts = test::table_of("50 1 0:3 / /data rw - autofs systemd-1 rw\n");
  const auto seen = probe(system, wants({share("share", "/data"), share("inner", "/data/inner")}, true));
  REQUIRE(seen.has_value());
  CHECK(seen->states[0].health == Health::autofs_idle);
  for (const auto& path : system.asked())
    CHECK_FALSE(path.starts_with("/data"));
}

TEST_CASE("other NFS mounts are found, hidden ones are not") {
  ScriptedSystem system;
  system.machine.mounts =
      test::table_of(nfs_line(50, 1, "/z", "a:/z") + nfs_line(51, 1, "/b", "b:/b") + nfs_line(52, 51, "/b", "c:/c"));
  for (const auto* path : {"/z", "/b"})
    system.machine.entries[path] = answered(0);
  auto request = wants({}, true);
  request.servers = false;
  const auto seen = probe(system, request);
  REQUIRE(seen.has_value());
  REQUIRE(seen->states.size() == 2);
  CHECK(seen->states[0].point.target == "/b");
  CHECK(seen->states[0].point.server == "c");
  CHECK(seen->states[0].stacked == 1);
  CHECK_FALSE(seen->states[0].wanted);
  CHECK(seen->states[1].point.target == "/z");
  CHECK(seen->servers.empty());
}

TEST_CASE("what the kernel has mounted in a share that root may not enter is not called denied") {
  ScriptedSystem system;
  system.machine.mounts = test::table_of(nfs_line(50, 1, "/share", "a:/s") + nfs_line(51, 50, "/share/in", "a:/s/in") +
                                         nfs_line(52, 1, "/other", "a:/o"));
  system.machine.entries["/share"] = answered(0);
  system.machine.entries["/share/in"] = answered(EACCES);
  system.machine.entries["/other"] = answered(EACCES);
  const auto seen = probe(system, wants({share("share", "/share")}, true));
  REQUIRE(seen.has_value());
  REQUIRE(seen->states.size() == 2);
  CHECK(seen->states[0].point.target == "/share");
  CHECK(seen->states[1].point.target == "/other");
  CHECK(seen->states[1].health == Health::denied);
}

TEST_CASE("the server of a mount that nobody asked for is asked only where its mount is not well") {
  ScriptedSystem system;
  system.machine.mounts = test::table_of(nfs_line(50, 1, "/data/share", "storage1:/mnt/share") +
                                         nfs_line(51, 1, "/well", "a:/a") + nfs_line(52, 1, "/stale", "b:/b"));
  system.machine.entries["/data/share"] = system.machine.entries["/well"] = answered(0);
  system.machine.entries["/stale"] = answered(ESTALE);
  const auto seen = probe(system, wants({share()}, true));
  REQUIRE(seen.has_value());
  CHECK(seen->server({.server = "storage1"}) != nullptr);
  CHECK(seen->server({.server = "a"}) == nullptr);
  CHECK(seen->server({.server = "b"}) != nullptr);
}

TEST_CASE("this server's own directory is not bound while its disk is not mounted") {
  ScriptedSystem system;
  const std::string root = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n";
  system.machine.mounts = test::table_of(root);
  auto& fstab = system.machine.entries["/etc/fstab"];
  fstab = answered(0);
  fstab.content = "# disks\n/dev/sdb1 /mnt ext4 nofail 0 2\n";
  system.machine.entries["/data/share"] = answered(0);
  auto point = share();
  point.here = true;
  const auto blocked = [&] {
    const auto plan = plan_mounts(*probe(system, wants({point})));
    return plan.plan.empty() && plan.diagnoses.size() == 1 && plan.diagnoses[0].code == "SF148";
  };
  CHECK(blocked());
  system.machine.mounts = test::table_of(root + "2 1 8:2 / /mnt rw - ext4 /dev/sdb1 rw\n");
  CHECK_FALSE(blocked());
  system.machine.mounts = test::table_of(root + "2 1 8:3 / /mnt/share rw - xfs /dev/sdc1 rw\n"); // a disk of its own
  CHECK_FALSE(blocked());

  fstab.content = "";
  system.machine.mounts = test::table_of(root);
  CHECK_FALSE(blocked());
  auto& units = system.machine.entries["/etc/systemd/system"];
  units = answered(0);
  units.names = {"mnt.mount"};
  auto& unit = system.machine.entries["/etc/systemd/system/mnt.mount"];
  unit = answered(0);
  unit.content = "[Mount]\nWhat=/dev/sdb1\nWhere=/mnt\n";
  CHECK(blocked());
  unit.content = ""; // a masked unit is a link to /dev/null
  CHECK_FALSE(blocked());
}

TEST_CASE("an unknown profile is an error") {
  ScriptedSystem system;
  system.machine.mounts = test::table_of("");
  auto request = share();
  request.profile = "fast";
  CHECK_FALSE(probe(system, wants({request})).has_value());
}

TEST_CASE("a second answer renews the health") {
  ScriptedSystem system;
  system.machine.mounts = test::table_of(nfs_line(50, 1, "/data/share", "storage1:/mnt/share"));
  system.machine.entries["/data/share"] = answered(ESTALE);
  auto seen = probe(system, wants({share()}));
  REQUIRE(seen->states[0].health == Health::stale);
  system.machine.entries["/data/share"] = answered(0);
  probe_again(system, {&seen->states[0]}, std::chrono::seconds(1));
  CHECK(seen->states[0].health == Health::healthy);
}

TEST_CASE("directories of this host above a mount through which only root gets") {
  ScriptedSystem system;
  system.machine.mounts = test::table_of(
      nfs_line(50, 1, "/data/share", "storage1:/mnt/share", test::k_v42_super, "rw,nosuid,nodev,relatime"));
  system.machine.nfs["storage1"] = test::good_server();
  system.machine.entries["/data/share"] = answered(0);
  auto& above = system.machine.entries["/data"];
  above = answered(0);
  const auto closed = [&](std::uint32_t mode, std::uint32_t uid) {
    above.mode = mode;
    above.uid = uid;
    return probe(system, wants({share()}))->states.at(0).closed_above;
  };
  CHECK(closed(0700, 0) == "/data");
  CHECK(closed(0744, 0) == "/data");
  CHECK(closed(0755, 0).empty());
  CHECK(closed(0710, 0).empty());    // to a group, or by an ACL
  CHECK(closed(0700, 2001).empty()); // of the user who works there
}
