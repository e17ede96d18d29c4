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

} // namespace

TEST_CASE("a client that lacks nothing") {
  CHECK(diagnose_client(seen_with(state_with(Health::healthy)), {}).empty());
  CHECK(diagnose_client(seen_with(state_with(Health::missing)), {}).empty());
  CHECK(diagnose_client({}, {false, false}).empty());
}

TEST_CASE("what is mounted and could not be mounted again is a warning; what does not work has its own diagnosis") {
  const auto found = diagnose_client(seen_with(state_with(Health::healthy), test::dead_server()), {});
  REQUIRE(codes(found) == "SF201");
  CHECK(found[0].severity == Severity::warning);
  CHECK(found[0].message.ends_with("; what is mounted works, and could not be mounted again"));
  CHECK(diagnose_client(seen_with(state_with(Health::hung), test::dead_server()), {}).empty());
  CHECK(diagnose_client(seen_with(state_with(Health::missing), test::dead_server()), {}).empty());
  CHECK(diagnose_client(seen_with(state_with(Health::healthy), std::nullopt), {}).empty());
  auto others = state_with(Health::healthy);
  others.wanted = false;
  CHECK(diagnose_client(seen_with(others, test::dead_server()), {}).empty());
}

TEST_CASE("mount.nfs is missed where something is to be mounted") {
  CHECK(codes(diagnose_client(seen_with(state_with(Health::missing)), {false, true})) == "SF246");
  CHECK(diagnose_client(seen_with(state_with(Health::healthy)), {false, true}).empty());
}

TEST_CASE("rpc.statd is missed where a mount of version 3 leaves its locks to the server") {
  const std::string v3 = test::k_v3_super;
  const ClientFacts without{true, false};
  CHECK(codes(diagnose_client(seen_with(state_with(Health::healthy, v3)), without)) == "SF245");
  CHECK(diagnose_client(seen_with(state_with(Health::healthy, v3 + ",nolock")), without).empty());
  CHECK(diagnose_client(seen_with(state_with(Health::healthy)), without).empty());
}

TEST_CASE("what a client needs is looked for only where it is needed, and of processes only root knows") {
  test::ScriptedSystem system;
  system.machine.identity.uid = 0;
  test::add_directory(system, "/proc", {"1", "44", "self"});
  test::add_file(system, "/proc/1/comm", "systemd\n");
  test::add_file(system, "/proc/44/comm", "rpc.gssd\n");
  test::leave_rest_missing(system);
  const auto look = [&](MountState state) {
    return read_client_facts(system, seen_with(std::move(state)), std::chrono::seconds(1));
  };
  CHECK(look(state_with(Health::healthy)) == ClientFacts{true, true});
  CHECK(look(state_with(Health::missing)) == ClientFacts{false, true});
  CHECK(look(state_with(Health::healthy, test::k_v3_super)) == ClientFacts{true, false});
  test::add_file(system, "/proc/44/comm", "rpc.statd\n");
  test::add_file(system, "/usr/sbin/mount.nfs", "");
  CHECK(look(state_with(Health::missing)) == ClientFacts{true, true});
  CHECK(look(state_with(Health::healthy, test::k_v3_super)) == ClientFacts{true, true});
  test::add_file(system, "/proc/44/comm", "other\n");
  system.machine.identity.uid = 1000;
  CHECK(look(state_with(Health::healthy, test::k_v3_super)) == ClientFacts{true, true});
}
