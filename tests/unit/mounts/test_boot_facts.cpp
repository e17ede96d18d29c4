#include "boot_machine.hpp"

#include <unistd.h>

using namespace sharefs;
using namespace sharefs::mounts;
using test::has_code;
using test::share;
namespace fs = std::filesystem;
using Machine = test::BootMachine;

namespace {

MountPoint point_at(const std::string& target, BootWay way) {
  auto point = share(base_name(target), target);
  point.boot = way;
  point.options = parse_options({"rw,vers=4.2"});
  return point;
}

BootPlan plan_for(Machine& machine, const std::vector<MountPoint>& points, const sys::MountTable& table = {}) {
  const auto facts = read_boot_facts(machine.system);
  auto host = read_boot_host(machine.system);
  host.unsafe = find_unsafe_targets(machine.system, facts, points, table);
  return plan_boot(facts, host, points);
}

} // namespace

TEST_CASE("attack: a mount point that others could replace by a link is not mounted at boot, in no way") {
  if (::geteuid() != 0)
    return;
  const auto user = [](const Machine& machine, const char* path) {
    REQUIRE(::chown(machine.at(path).c_str(), 54321, 54321) == 0);
  };
  for (const bool systemd : {true, false})
    for (const auto way : {BootWay::automatic, BootWay::unit, BootWay::automount, BootWay::fstab, BootWay::rc_local}) {
      Machine machine(systemd);
      fs::create_directories(machine.at("/home/alice/work/data"));
      machine.put("/etc/fstab", "/dev/sda1 / ext4 defaults 0 1\n");
      const auto before = machine.etc();
      const auto point = point_at("/home/alice/work/data", way);
      const auto safe = plan_for(machine, {point});
      CHECK(safe.diagnoses.empty());
      for (const auto& step : safe.plan.steps)
        REQUIRE(plan::apply_action(step.action, machine.system));
      for (const auto* path : {"/home/alice", "/home/alice/work"}) {
        user(machine, path);
        const auto refused = plan_for(machine, {point});
        REQUIRE(refused.diagnoses.size() == 1);
        CHECK(refused.diagnoses[0].code == "SF235");
        CHECK(refused.diagnoses[0].message.find("others could replace `") != std::string::npos);
        REQUIRE(::chown(machine.at(path).c_str(), 0, 0) == 0);
        CHECK(plan_for(machine, {point}).plan.empty());
      }
      user(machine, "/home/alice");
      for (const auto& step : plan_for(machine, {point}).plan.steps) // the entry of an earlier sharefs goes
        REQUIRE(plan::apply_action(step.action, machine.system));
      CHECK(machine.etc() == before);
      CHECK(plan_for(machine, {point}).plan.empty());
    }
  Machine machine;
  fs::create_directories(machine.at("/data"));
  for (const mode_t mode : {0775, 01777}) {
    ::chmod(machine.at("/data").c_str(), mode);
    const auto refused = plan_for(machine, {point_at("/data/x", BootWay::unit)});
    CHECK(refused.plan.empty());
    REQUIRE(refused.diagnoses.size() == 1);
    CHECK(refused.diagnoses[0].message.find("others could replace `x`: `/data` has mode") != std::string::npos);
  }
}

TEST_CASE("who could replace a mount point below another mount is seen once that is mounted") {
  Machine machine(false);
  fs::create_directories(machine.at("/o/inner"));
  const std::vector<MountPoint> both{point_at("/o", BootWay::automatic), point_at("/o/inner", BootWay::automatic)};
  const auto table = test::table_of(test::nfs_line(50, 1, "/o", "storage1:/mnt/o"));
  const auto first = plan_for(machine, both);
  CHECK(first.diagnoses.empty());
  for (const auto& step : first.plan.steps)
    REQUIRE(plan::apply_action(step.action, machine.system));
  ::chmod(machine.at("/o").c_str(), 0775);
  CHECK(plan_for(machine, both).plan.empty());
  const auto refused_inner = plan_for(machine, both, table);
  REQUIRE(refused_inner.diagnoses.size() == 1);
  CHECK((refused_inner.diagnoses[0].code == "SF235" && refused_inner.diagnoses[0].subject == "inner"));
  ::chmod(machine.at("/o").c_str(), 0755);
  const auto text = machine.root.read("etc/rc.local");
  CHECK(text.find("grep -qF ' /o ' /proc/mounts && ") != std::string::npos);
  CHECK(plan_for(machine, both).plan.empty()); // both unmounted again: what is there stays
  CHECK(plan_for(machine, both).diagnoses.empty());
  CHECK(plan_for(machine, both, table).plan.empty());

  auto below = both;
  below[1].boot = BootWay::fstab;
  const auto refused = plan_for(machine, below, table);
  REQUIRE(refused.diagnoses.size() == 1);
  CHECK(refused.diagnoses[0].hint == "write `boot: rc.local`");
}

TEST_CASE("a unit of another directory that is enabled is left, with its link") {
  Machine machine;
  const std::string own = "/usr/local/lib/systemd/system/data-share.mount";
  const auto link = machine.at("/etc/systemd/system/multi-user.target.wants/data-share.mount");
  machine.put(own, "[Mount]\nWhat=s:/x\nType=nfs\n");
  fs::create_symlink(own, link);
  CHECK(machine.entries() == std::vector<BootEntry>{{{own, "s:/x", "/data/share", "nfs", ""}, BootWay::unit}});
  const auto plan = machine.plan(BootWay::automatic);
  CHECK(plan.plan.empty());
  REQUIRE(plan.diagnoses.size() == 1);
  CHECK(plan.diagnoses[0].code == "SF234");
  CHECK(plan.diagnoses[0].message.starts_with(own + " mounts /data/share at boot already"));

  const auto before = machine.etc();
  Machine other; // what an earlier sharefs has written over it goes, and the link stays
  other.apply(BootWay::unit);
  fs::copy(other.at("/etc"), machine.at("/etc"),
           fs::copy_options::recursive | fs::copy_options::copy_symlinks | fs::copy_options::skip_existing);
  CHECK(has_code(machine.plan(BootWay::unit).diagnoses, "SF234"));
  machine.apply(BootWay::none);
  CHECK(machine.etc() == before);

  fs::remove(link); // one that systemd finds by a relative path is ours
  machine.apply(BootWay::unit);
  const auto service = machine.at("/etc/systemd/system/multi-user.target.wants/sharefs-data-share.service");
  fs::remove(service);
  fs::create_symlink("../sharefs-data-share.service", service);
  CHECK(machine.plan(BootWay::unit).plan.empty());
  machine.apply(BootWay::none);
  CHECK_FALSE(fs::exists(fs::symlink_status(service)));
}

TEST_CASE("a line of fstab that systemd mounts at its first use is mounted at boot") {
  Machine machine;
  machine.put("/etc/fstab", "s:/x /data/share nfs noauto,x-systemd.automount 0 0\n");
  for (const auto way : {BootWay::automatic, BootWay::fstab}) {
    const auto plan = machine.plan(way);
    CHECK(plan.plan.empty());
    REQUIRE(plan.diagnoses.size() == 1);
    CHECK(plan.diagnoses[0].message.starts_with("/etc/fstab:1 mounts /data/share at boot already"));
  }
}
