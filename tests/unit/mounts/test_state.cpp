#include "mounts/state.hpp"
#include "samples.hpp"
#include "support/catch.hpp"

using namespace sharefs;
using namespace sharefs::mounts;
using test::answered;
using test::nfs_line;
using test::table_of;

namespace {

const MountPoint k_point{"share", "storage1", "/mnt/share", "/data/share", {"rw", "hard"}, ""};

MountState seen(const std::string& lines, const sys::PathProbe* probe, const std::vector<PendingMount>& pending = {}) {
  return classify(k_point, true, table_of(lines), probe, pending, "10.77.0.1");
}

const std::string k_line = nfs_line(50, 1, "/data/share", "storage1:/mnt/share");

} // namespace

TEST_CASE("the probe of the mount point decides on the health") {
  struct Row {
    sys::PathHealth path;
    Health health;
  };
  const auto row = GENERATE(values<Row>({{sys::PathHealth::ok, Health::healthy},
                                         {sys::PathHealth::full, Health::healthy},
                                         {sys::PathHealth::hung, Health::hung},
                                         {sys::PathHealth::stale, Health::stale},
                                         {sys::PathHealth::denied, Health::denied},
                                         {sys::PathHealth::read_only, Health::read_only},
                                         {sys::PathHealth::missing, Health::failed},
                                         {sys::PathHealth::failed, Health::failed}}));
  const auto probe = answered(row.path);
  CHECK(seen(k_line, &probe).health == row.health);
}

TEST_CASE("late answers are slow") {
  const auto probe = answered(sys::PathHealth::ok, std::chrono::milliseconds(501));
  CHECK(seen(k_line, &probe).health == Health::slow);
  CHECK(seen(k_line, &probe).right());
}

TEST_CASE("states that the mount table decides") {
  const auto ok = answered(sys::PathHealth::ok);
  CHECK(seen("", nullptr).health == Health::missing);
  CHECK_FALSE(seen("", nullptr).mounted());
  CHECK(seen(nfs_line(50, 1, "/data/share", "storage1:/mnt/other"), &ok).health == Health::wrong_source);
  CHECK(seen("50 1 8:2 / /data/share rw - ext4 /dev/sdb1 rw\n", nullptr).health == Health::wrong_source);
  CHECK(seen("50 1 8:2 / /data/share rw - ext4 /dev/sdb1 rw\n", nullptr).detail == "ext4 /dev/sdb1");
  CHECK(seen("50 1 0:3 / /data/share rw - autofs systemd-1 rw\n", nullptr).health == Health::autofs_idle);
  CHECK(
      seen("50 1 0:3 / /data/share rw - autofs systemd-1 rw\n" + nfs_line(51, 50, "/data/share", "storage1:/mnt/share"),
           &ok)
          .health == Health::healthy);
  CHECK(seen(k_line, nullptr).health == Health::failed); // not looked at is not healthy
}

TEST_CASE("a background mount") {
  const std::vector<PendingMount> pending{{9, "storage1:/mnt/share", "/data/share", "bg"}};
  const auto state = seen("", nullptr, pending);
  CHECK(state.health == Health::backgrounding);
  CHECK(state.pending->pid == 9);
  const auto ok = answered(sys::PathHealth::ok);
  CHECK(seen(k_line, &ok, pending).health == Health::healthy);
  CHECK(seen(k_line, &ok, pending).pending.has_value());
  CHECK(seen("", nullptr, {{9, "storage1:/x", "/data/other", "bg"}}).health == Health::missing);
}

TEST_CASE("stacked mounts are counted") {
  const auto ok = answered(sys::PathHealth::ok);
  const auto state = seen(k_line + nfs_line(51, 50, "/data/share", "storage1:/mnt/share"), &ok);
  CHECK(state.stacked == 1);
  CHECK_FALSE(state.right());
  CHECK(seen(k_line, &ok).stacked == 0);
}

TEST_CASE("asked for rw and mounted ro is read-only") {
  const auto ok = answered(sys::PathHealth::ok);
  const auto state = seen(nfs_line(50, 1, "/data/share", "storage1:/mnt/share", test::k_v42_super, "ro,relatime"), &ok);
  CHECK(state.health == Health::read_only);
}

TEST_CASE("other options are no right state") {
  const auto ok = answered(sys::PathHealth::ok);
  const auto state = seen(nfs_line(50, 1, "/data/share", "storage1:/mnt/share", "rw,vers=3,soft"), &ok);
  CHECK(state.health == Health::healthy);
  CHECK_FALSE(state.right());
  CHECK(seen(k_line, &ok).right());
}

TEST_CASE("every health has a name") {
  CHECK(std::string(to_string(Health::read_only)) == "read-only");
  CHECK(std::string(to_string(Health::wrong_source)) == "wrong source");
  CHECK(std::string(to_string(Health::autofs_idle)) == "autofs-idle");
}
