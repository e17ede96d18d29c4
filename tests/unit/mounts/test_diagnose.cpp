#include "mounts/diagnose.hpp"
#include "samples.hpp"
#include "support/catch.hpp"

using namespace sharefs;
using namespace sharefs::mounts;

namespace {

MountState state_of(Health health) {
  MountState state;
  state.point = test::point_with("rw");
  state.health = health;
  if (health != Health::missing && health != Health::backgrounding)
    state.mount = test::entry(test::k_v42_super);
  state.detail = "detail";
  if (health == Health::backgrounding)
    state.pending = PendingMount{99, "storage1:/mnt/share", "/data/share", "bg"};
  return state;
}

} // namespace

TEST_CASE("every bad state has a code, a cause, and a cure") {
  struct Row {
    Health health;
    const char *code, *fix;
  };
  const auto row = GENERATE(values<Row>({
      {Health::slow, "SF214", ""},
      {Health::hung, "SF212", "sharefs probe storage1"},
      {Health::stale, "SF211", "sharefs recover share"},
      {Health::denied, "SF215", "sharefs probe storage1:/mnt/share"},
      {Health::read_only, "SF216", ""},
      {Health::missing, "SF217", "sharefs mount share"},
      {Health::wrong_source, "SF208", "sharefs umount share && sharefs mount share"},
      {Health::backgrounding, "SF218", "sharefs probe storage1"},
      {Health::failed, "SF220", ""},
      {Health::full, "SF230", ""},
      {Health::unknown, "SF231", ""},
  }));
  CAPTURE(row.code);
  const auto server = test::dead_server();
  const auto found = diagnose(state_of(row.health), &server);
  REQUIRE(found.size() == 1);
  CHECK(found[0].code == row.code);
  CHECK(found[0].subject == "share");
  CHECK(found[0].fix == row.fix);
  CHECK(found[0].message.find("/data/share") != std::string::npos);
  CHECK_FALSE((found[0].hint.empty() && found[0].fix.empty()));
}

TEST_CASE("well is not talked about") {
  CHECK(diagnose(state_of(Health::healthy), nullptr).empty());
  CHECK(diagnose(state_of(Health::autofs_idle), nullptr).empty());
}

TEST_CASE("a hung mount is told apart by its server") {
  const auto dead = test::dead_server(), alive = test::good_server();
  CHECK(diagnose(state_of(Health::hung), &dead)[0].message.find("stage connect: no answer") != std::string::npos);
  CHECK(diagnose(state_of(Health::hung), &alive)[0].code == "SF213");
  CHECK(diagnose(state_of(Health::hung), nullptr)[0].code == "SF212");
}

TEST_CASE("what is asked of the server is the version that is mounted, not the one that would be chosen now") {
  auto server = test::good_server();
  server.v4 = false;
  server.stages[5] = {sys::ProbeStage::nfs4, sys::StageOutcome::absent, {}, "not offered", "", ""};
  auto state = state_of(Health::failed);
  state.point = test::point_with("vers=3");
  auto& mount = state.mount.emplace();
  mount.fs_type = "nfs4";
  mount.super_options = "rw,vers=4.2";
  CHECK(diagnose(state, &server)[0].message.find("server storage1 does not serve NFS 4.2") != std::string::npos);
}

TEST_CASE("a refusal has the cure of its reason") {
  auto server = test::good_server();
  server.access = {{.directory = "/mnt/share", .allowed = false, .reason = "only Kerberos (krb5)"}};
  const auto found = diagnose(state_of(Health::denied), &server);
  REQUIRE(found.size() == 1);
  CHECK(found[0].code == "SF215");
  CHECK(found[0].hint == "add `sec=krb5` to `options:`");
}

TEST_CASE("a directory of this host above the mount point that is closed to users") {
  auto state = state_of(Health::healthy);
  state.closed_above = "/data";
  auto found = diagnose(state, nullptr);
  REQUIRE(found.size() == 1);
  CHECK(found[0].code == "SF250");
  CHECK(found[0].severity == Severity::warning);
  state.health = Health::denied; // as a user sees it
  found = diagnose(state, nullptr);
  REQUIRE(found.size() == 1);
  CHECK(found[0].code == "SF250");
  CHECK(found[0].severity == Severity::error);
}

TEST_CASE("a mount that fails since its server no longer offers its version is told so") {
  auto server = test::good_server();
  server.v4 = false;
  server.stages[5] = {sys::ProbeStage::nfs4, sys::StageOutcome::absent, {}, "not offered", "", ""};
  auto state = state_of(Health::failed);
  state.point = test::point_with("vers=4.2");
  const auto found = diagnose(state, &server);
  REQUIRE(found.size() == 1);
  CHECK(found[0].code == "SF220");
  CHECK(found[0].message.starts_with("/data/share fails: detail; server storage1 does not serve NFS 4.2"));
  CHECK(found[0].hint == "ask for another version in `options:`, or for none");
}

TEST_CASE("hung mounts of two NFS servers of one host, at two ports, are two diagnoses") {
  Observation seen;
  seen.states = {state_of(Health::hung), state_of(Health::hung)};
  seen.states[1].point.options = parse_options({"port=20490"});
  seen.servers = {{"storage1", test::good_server()}, {"storage1 port 20490", test::dead_server()}};
  const auto found = diagnose(seen);
  REQUIRE(found.size() == 2);
  CHECK(found[0].code == "SF213");
  CHECK(found[1].code == "SF212");
}

TEST_CASE("a thousand hung mounts of one server are one diagnosis; what else is wrong with them is said as well") {
  Observation seen;
  for (int number = 0; number < 1000; ++number) {
    seen.states.push_back(state_of(Health::hung));
    seen.states.back().point.target = "/data/" + std::to_string(number);
  }
  seen.states[7].stacked = 1;
  seen.states.push_back(state_of(Health::hung));
  seen.states.back().point.server = "storage2";
  seen.servers = {{"storage1", test::good_server()}, {"storage2", test::dead_server()}};
  const auto found = diagnose(seen);
  REQUIRE(found.size() == 3);
  CHECK(found[0].message == "/data/0 and 999 other mounts of storage1 do not answer (detail), although its server "
                            "storage1 does");
  CHECK(found[0].fix == "sharefs recover --all");
  CHECK(found[1].code == "SF219");
  CHECK(found[2].message.starts_with("/data/share does not answer (detail), nor does its server storage2"));
}

TEST_CASE("options that differ") {
  auto state = state_of(Health::healthy);
  state.differences = {{"vers", "vers=4.2", "vers=3", true}, {"nconnect", "nconnect=4", "(nconnect=1)", false}};
  const auto found = diagnose(state, nullptr);
  REQUIRE(found.size() == 2);
  CHECK(found[0].code == "SF209");
  CHECK(found[0].severity == Severity::error);
  CHECK(found[0].message == "/data/share is mounted with vers=3 instead of vers=4.2");
  CHECK(found[0].fix == "sharefs umount share && sharefs mount share");
  CHECK(found[1].severity == Severity::info);
}

TEST_CASE("read-only by its options is told once") {
  auto state = state_of(Health::read_only);
  state.differences = {{"access", "rw", "ro", true}};
  const auto found = diagnose(state, nullptr);
  REQUIRE(found.size() == 1);
  CHECK(found[0].code == "SF216");
}

TEST_CASE("stacked mounts and a mount.nfs that is still at work") {
  auto state = state_of(Health::healthy);
  state.stacked = 2;
  state.pending = PendingMount{99, "storage1:/mnt/share", "/data/share", ""};
  const auto found = diagnose(state, nullptr);
  REQUIRE(found.size() == 2);
  CHECK(found[0].code == "SF219");
  CHECK(found[1].code == "SF218");
}

TEST_CASE("a mount.nfs in the foreground is waited for, and ended only when it takes long") {
  auto state = state_of(Health::backgrounding);
  state.pending = PendingMount{99, "storage1:/mnt/share", "/data/share", "rw", std::chrono::seconds(2)};
  const auto found = diagnose(state, nullptr).at(0);
  CHECK(found.message == "/data/share is not mounted yet; `mount.nfs` (pid 99) is mounting storage1:/mnt/share");
  CHECK(found.hint.starts_with("wait"));
  state.pending->age = std::chrono::seconds(31);
  CHECK(diagnose(state, nullptr).at(0).hint.ends_with("kill 99"));
  state.health = Health::healthy;
  CHECK(diagnose(state, nullptr).at(0).hint == "end it: kill 99");
  state.pending->age = std::chrono::seconds(2);
  CHECK(diagnose(state, nullptr).at(0).hint.starts_with("wait"));
}

TEST_CASE("the server of a mount in the background is asked at its port") {
  auto state = state_of(Health::backgrounding);
  state.pending = PendingMount{99, "storage1:/mnt/share", "/data/share", "rw,bg,port=20490"};
  CHECK(diagnose(state, nullptr).at(0).fix == "sharefs probe --port=20490 storage1");
}

TEST_CASE("a mount that nobody configured is called by its path, quoted in the fix") {
  auto state = state_of(Health::stale);
  state.point.name.clear();
  state.point.target = "/data/my share";
  state.wanted = false;
  CHECK(diagnose(state, nullptr)[0].subject == "/data/my share");
  CHECK(diagnose(state, nullptr)[0].fix == "sharefs recover '/data/my share'");
}
