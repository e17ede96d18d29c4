// Mounts whose server is this host: the server's own directory, never NFS (a server that mounts its own export hangs
// with all of its clients).
#include "mounts/diagnose.hpp"
#include "mounts/plan_mount.hpp"
#include "samples.hpp"
#include "support/catch.hpp"

using namespace sharefs;
using namespace sharefs::mounts;
using test::nfs_line;
using test::ScriptedSystem;

namespace {

constexpr const char* k_disk = "50 1 8:17 / /srv rw,relatime - ext4 /dev/sdb1 rw\n";

/// From storage1, which is this host, to `target`.
MountPoint own(const std::string& target) {
  auto point = test::share("share", target);
  point.path = "/srv/share";
  return point;
}

struct Server {
  ScriptedSystem system;
  Observation seen;

  explicit Server(const std::string& lines) {
    system.machine.identity.hostname = "storage1";
    system.machine.mounts = test::table_of(k_disk + lines);
    system.machine.entries["/srv/share"] = test::answered(0);
    test::leave_rest_missing(system);
  }
  MountState look(const MountPoint& point) {
    ProbeRequest request;
    request.wanted = {point};
    request.targets = true;
    auto found = probe(system, request);
    REQUIRE(found.has_value());
    seen = std::move(*found);
    return seen.states.front();
  }
};

} // namespace

TEST_CASE("at the same path there is nothing to mount, and all is well") {
  Server server("");
  const auto state = server.look(own("/srv/share"));
  CHECK(state.health == Health::here);
  CHECK(state.right());
  CHECK(diagnose(server.seen).empty());
  const auto plan = plan_mounts(server.seen);
  CHECK(plan.plan.empty());
  CHECK(plan.right == std::vector<std::string>{"/srv/share"});
}

TEST_CASE("a server without the directory is told so; nothing is made in its place") {
  Server server("");
  server.system.machine.entries["/srv/share"] = test::missing_below("/srv");
  CHECK(server.look(own("/srv/share")).health == Health::missing);
  const auto plan = plan_mounts(server.seen);
  CHECK(plan.plan.empty());
  REQUIRE(plan.diagnoses.size() == 1);
  CHECK(plan.diagnoses[0].message == "this host is the server, and has no directory /srv/share");
}

TEST_CASE("at another path the directory is bound there, and found again, and its undo ends just that") {
  Server server("");
  CHECK(server.look(own("/data/share")).health == Health::missing);
  const auto plan = plan_mounts(server.seen);
  const auto& mount = std::get<plan::Mount>(plan.plan.steps.back().action);
  CHECK(plan::describe(mount) == "bind /srv/share to /data/share");
  CHECK(mount.fs_type == "bind");
  CHECK(mount.options == "nosuid,nodev");
  server.system.machine.add_mount(mount.source, mount.target, mount.fs_type, mount.options);
  CHECK(server.look(own("/data/share")).health == Health::here);

  auto point = own("/data/share");
  point.here = true;
  const auto end = plan_unmounts(server.seen.table, {point}, {}, {});
  REQUIRE(end.plan.steps.size() == 1);
  const auto& unmount = std::get<plan::Unmount>(end.plan.steps[0].action);
  CHECK(unmount.source == "/srv/share");
  CHECK(unmount.fs_type == "bind");
}

TEST_CASE("a disk of the server is never unmounted") {
  Server server("51 50 8:33 / /srv/share rw,relatime - xfs /dev/sdc1 rw\n");
  auto point = own("/srv/share");
  CHECK(server.look(point).health == Health::here);
  point.here = true;
  const auto end = plan_unmounts(server.seen.table, {point}, {}, {});
  CHECK(end.plan.empty());
  CHECK(end.right == std::vector<std::string>{"/srv/share"});
}

TEST_CASE("something else at the target is left alone") {
  Server server("51 1 8:33 / /data/share rw,relatime - xfs /dev/sdc1 rw\n");
  const auto state = server.look(own("/data/share"));
  CHECK(state.health == Health::wrong_source);
  CHECK(state.detail == "xfs /dev/sdc1");
}

TEST_CASE("a server that mounts itself is warned, whoever mounted it") {
  Server server(nfs_line(51, 50, "/srv/share", "storage1:/srv/share") + nfs_line(52, 1, "/mnt", "127.0.0.1:/srv"));
  server.system.machine.entries["/mnt"] = test::answered(0);
  CHECK(server.look(own("/srv/share")).health == Health::looped);
  auto found = diagnose(server.seen);
  REQUIRE(found.size() == 1);
  CHECK(found[0].code == "SF233");
  CHECK(found[0].severity == Severity::error);

  ProbeRequest request;
  request.others = true;
  found = diagnose(*probe(server.system, request));
  REQUIRE(found.size() >= 1);
  CHECK(found.back().code == "SF233");
  CHECK(found.back().severity == Severity::warning);
}

TEST_CASE("the server is this host also where only the name service knows it") {
  Server server("");
  server.system.machine.identity.hostname = "rack7";
  server.system.machine.identity.addresses = {"10.77.0.1"};
  server.system.machine.nfs["storage1"] = test::good_server();
  server.system.machine.nfs["storage1"].address = "10.77.0.1";
  CHECK(server.look(own("/srv/share")).health == Health::here);
}
