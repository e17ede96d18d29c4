#include "mounts/diagnose.hpp"
#include "samples.hpp"
#include "support/catch.hpp"

using namespace sharefs;
using namespace sharefs::mounts;

namespace {

MountState state_with(Health health, const std::string& super = test::k_v42_super) {
  MountState state;
  state.point = test::point_with("rw");
  state.health = health;
  if (health != Health::missing)
    state.mount = test::entry(super);
  return state;
}

Observation seen_with(MountState state, std::optional<sys::NfsProbe> server = test::good_server()) {
  Observation seen;
  if (server)
    seen.servers.emplace("storage1", *server);
  seen.states.push_back(std::move(state));
  return seen;
}

std::string codes(const Diagnoses& found) {
  std::string text;
  for (const auto& one : found)
    text += (text.empty() ? "" : " ") + one.code;
  return text;
}

/// A machine of root with mount.nfs and rpc.statd.
struct Client {
  test::ScriptedSystem system;

  Client() {
    system.machine.identity.uid = 0;
    test::add_directory(system, "/proc", {"1", "44", "self"});
    test::add_file(system, "/proc/1/comm", "systemd\n");
    test::add_file(system, "/proc/44/comm", "rpc.statd\n");
    test::add_file(system, "/usr/sbin/mount.nfs", "");
    test::leave_rest_missing(system);
  }
  Diagnoses diagnose(const Observation& seen) { return diagnose_client(system, seen, std::chrono::seconds(1)); }
  Diagnoses diagnose(MountState state) { return diagnose(seen_with(std::move(state))); }
};

} // namespace

TEST_CASE("a client that lacks nothing") {
  Client client;
  CHECK(client.diagnose(state_with(Health::healthy)).empty());
  CHECK(client.diagnose(state_with(Health::healthy, test::k_v3_super)).empty());
  CHECK(client.diagnose(state_with(Health::missing)).empty());
}

TEST_CASE("what is mounted and could not be mounted again is a warning; what does not work has its own diagnosis") {
  Client client;
  const auto found = client.diagnose(seen_with(state_with(Health::healthy), test::dead_server()));
  REQUIRE(codes(found) == "SF201");
  CHECK(found[0].severity == Severity::warning);
  CHECK(found[0].message.ends_with("; what is mounted works, and could not be mounted again"));
  CHECK(client.diagnose(seen_with(state_with(Health::hung), test::dead_server())).empty());
  CHECK(client.diagnose(seen_with(state_with(Health::missing), test::dead_server())).empty());
  CHECK(client.diagnose(seen_with(state_with(Health::healthy), std::nullopt)).empty());
  auto others = state_with(Health::healthy);
  others.wanted = false;
  CHECK(client.diagnose(seen_with(others, test::dead_server())).empty());
}

TEST_CASE("mount.nfs is missed where something is to be mounted") {
  Client client;
  client.system.machine.entries.erase("/usr/sbin/mount.nfs");
  CHECK(codes(client.diagnose(state_with(Health::missing))) == "SF246");
  CHECK(client.diagnose(state_with(Health::healthy)).empty());
  CHECK(client.diagnose(Observation{}).empty());
}

TEST_CASE(
    "rpc.statd is missed where a mount of version 3 leaves its locks to the server; of processes only root knows") {
  Client client;
  test::add_file(client.system, "/proc/44/comm", "rpc.gssd\n");
  const std::string v3 = test::k_v3_super;
  CHECK(codes(client.diagnose(state_with(Health::healthy, v3))) == "SF245");
  CHECK(client.diagnose(state_with(Health::healthy, v3 + ",nolock")).empty());
  CHECK(client.diagnose(state_with(Health::healthy)).empty());
  client.system.machine.identity.uid = 1000;
  CHECK(client.diagnose(state_with(Health::healthy, v3)).empty());
}
