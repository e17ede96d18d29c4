#include "mounts/state.hpp"
#include "samples.hpp"
#include "support/catch.hpp"

using namespace sharefs;
using namespace sharefs::mounts;
using test::answered;
using test::nfs_line;
using test::table_of;

namespace {

const MountPoint k_point = test::point_with("rw,hard");

MountState seen(const std::string& lines, const sys::Entry* answer, const std::vector<PendingMount>& pending = {}) {
  return classify(k_point, true, table_of(lines), answer == nullptr ? std::nullopt : std::optional(*answer), pending,
                  nullptr);
}

const std::string k_line = nfs_line(50, 1, "/data/share", "storage1:/mnt/share");

} // namespace

TEST_CASE("the probe of the mount point decides on the health") {
  struct Row {
    int error_number;
    Health health;
  };
  const auto row = GENERATE(values<Row>({{0, Health::healthy},
                                         {ENOSPC, Health::full},
                                         {ETIMEDOUT, Health::hung},
                                         {ESTALE, Health::stale},
                                         {EACCES, Health::denied},
                                         {EROFS, Health::read_only},
                                         {EAGAIN, Health::unknown},
                                         {EIO, Health::failed}}));
  const auto answer = answered(row.error_number);
  CHECK(seen(k_line, &answer).health == row.health);
}

TEST_CASE("late answers are slow") {
  const auto answer = answered(0, std::chrono::milliseconds(501));
  CHECK(seen(k_line, &answer).health == Health::slow);
  CHECK(seen(k_line, &answer).right());
}

TEST_CASE("states that the mount table decides") {
  const auto ok = answered(0);
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
  CHECK(seen(k_line, nullptr).health == Health::unknown); // not asked is not healthy
}

TEST_CASE("a background mount") {
  const std::vector<PendingMount> pending{{9, "storage1:/mnt/share", "/data/share", "bg"}};
  const auto state = seen("", nullptr, pending);
  CHECK(state.health == Health::backgrounding);
  CHECK(state.pending->pid == 9);
  const auto ok = answered(0);
  CHECK(seen(k_line, &ok, pending).health == Health::healthy);
  CHECK(seen(k_line, &ok, pending).pending.has_value());
  CHECK(seen("", nullptr, {{9, "storage1:/x", "/data/other", "bg"}}).health == Health::missing);
}

TEST_CASE("a file system without free space is full, and no right state") {
  auto answer = answered();
  answer.space->free_bytes = 0;
  CHECK(seen(k_line, &answer).health == Health::full);
  CHECK(is_good(Health::full));
  CHECK_FALSE(seen(k_line, &answer).right());
}

TEST_CASE("a file system without free inodes is full, too; one that has no fixed number of them is not") {
  auto answer = answered();
  answer.space->files = 65536;
  CHECK(seen(k_line, &answer).health == Health::full);
  CHECK(seen(k_line, &answer).detail == "all of its 65536 inodes are used");
  answer.space->free_files = 1;
  CHECK(seen(k_line, &answer).health == Health::healthy);
  answer.space->files = answer.space->free_files = 0;
  CHECK(seen(k_line, &answer).health == Health::healthy);
}

TEST_CASE("an I/O error of a soft mount means that its server is away") {
  const auto failed = answered(EIO);
  CHECK(seen(k_line, &failed).health == Health::failed);
  const auto soft = nfs_line(50, 1, "/data/share", "storage1:/mnt/share", "rw,vers=3,soft,addr=10.77.0.1");
  CHECK(seen(soft, &failed).health == Health::hung);
  CHECK(seen(soft, &failed).detail.find("soft mount") != std::string::npos);
}

TEST_CASE("a server whose name leads to another address now") {
  const auto ok = answered();
  const auto moved = [&](const std::string& addresses) {
    auto server = test::good_server();
    server.stages[0].detail = addresses;
    return classify(k_point, true, table_of(k_line), ok, {}, &server).moved_to;
  };
  CHECK(moved("10.77.0.1").empty());
  CHECK(moved("10.77.0.9, 10.77.0.1").empty());
  CHECK(moved("10.77.0.9") == "10.77.0.9");
}

TEST_CASE("asked for rw and mounted ro is read-only") {
  const auto ok = answered(0);
  const auto state = seen(nfs_line(50, 1, "/data/share", "storage1:/mnt/share", test::k_v42_super, "ro,relatime"), &ok);
  CHECK(state.health == Health::read_only);
}

TEST_CASE("other options are no right state") {
  const auto ok = answered(0);
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
