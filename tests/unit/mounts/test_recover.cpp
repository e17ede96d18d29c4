#include "mounts/recover.hpp"
#include "samples.hpp"
#include "support/catch.hpp"

using namespace sharefs;
using namespace sharefs::mounts;
using test::answered;
using test::has_code;
using test::nfs_line;
using test::ScriptedSystem;
using test::share;

namespace {

MountState state_of(Health health) {
  MountState state;
  state.point = test::point_with("rw,hard");
  state.health = health;
  state.mount = test::entry(test::k_v42_super);
  return state;
}

const std::vector<Health> k_three_stale(3, Health::stale);

/// A machine with one share whose mount point is in `health`.
struct Host {
  ScriptedSystem system;
  std::vector<MountPoint> wanted{share()};
  std::map<std::string, std::vector<Health>> looks;
  std::map<std::string, HolderReport> holders;
  std::set<std::string> staged = {};

  explicit Host(int error_number, const std::string& more = "") {
    system.machine.mounts = test::table_of(
        nfs_line(50, 1, "/data/share", "storage1:/mnt/share", test::k_v42_super, "rw,nosuid,nodev,relatime") + more);
    system.machine.nfs["storage1"] = test::good_server();
    system.machine.entries["/data/share"] = answered(error_number);
    looks["/data/share"] = k_three_stale;
  }
  MountPlan plan(bool force = false) {
    test::leave_rest_missing(system);
    ProbeRequest request;
    request.wanted = wanted;
    request.others = request.want_access = request.targets = true;
    const auto seen = probe(system, request);
    REQUIRE(seen.has_value());
    return plan_recovery({*seen, looks, holders, staged, force});
  }
};

std::vector<std::string> actions_of(const plan::Plan& plan) {
  std::vector<std::string> lines;
  for (const auto& step : plan.steps)
    lines.push_back(plan::describe(step.action));
  return lines;
}

} // namespace

TEST_CASE("the ladder") {
  struct Row {
    Health health;
    std::vector<Health> looks;
    bool server, force;
    Remedy remedy;
    const char* code;
  };
  const auto row = GENERATE(values<Row>({
      {Health::healthy, {Health::healthy}, true, false, Remedy::none, ""},
      {Health::healthy, {Health::stale, Health::healthy, Health::healthy}, true, false, Remedy::none, ""}, // it healed
      {Health::healthy, {Health::healthy}, true, true, Remedy::none, ""}, // --force is no reason to unmount
      {Health::stale, k_three_stale, true, false, Remedy::remount, ""},
      {Health::stale, k_three_stale, true, true, Remedy::remount, ""},
      {Health::stale, {Health::stale}, true, false, Remedy::wait, "SF225"}, // one look is not enough
      {Health::stale, {Health::stale, Health::healthy, Health::stale}, true, false, Remedy::wait, "SF225"},
      {Health::stale, k_three_stale, false, false, Remedy::wait, "SF212"},
      {Health::stale, k_three_stale, false, true, Remedy::detach, ""},
      {Health::hung, {Health::hung}, false, false, Remedy::wait, "SF212"},
      {Health::hung, {Health::hung}, true, false, Remedy::wait, "SF213"},
      {Health::hung, {Health::hung}, false, true, Remedy::detach, ""},
      {Health::hung, {Health::hung}, true, true, Remedy::remount, ""},
      {Health::denied, {Health::denied}, true, true, Remedy::wait, "SF215"},
      {Health::wrong_source, {Health::wrong_source}, true, true, Remedy::wait, "SF208"},
      {Health::missing, {Health::missing}, true, false, Remedy::mount, ""},
  }));
  CAPTURE(to_string(row.health), row.server, row.force);
  const auto server = row.server ? test::good_server() : test::dead_server();
  const auto decision = choose_remedy(state_of(row.health), row.looks, &server, row.force);
  CHECK(decision.remedy == row.remedy);
  if (*row.code == '\0')
    CHECK(decision.diagnoses.empty());
  else
    CHECK(has_code(decision.diagnoses, row.code));
}

TEST_CASE("judge: what hangs at an address that its server has left, only when asked to", "[recover]") {
  auto state = state_of(Health::hung);
  const auto server = test::good_server();
  const std::vector<Health> looks(3, Health::hung);
  CHECK(choose_remedy(state, looks, &server, false, true).remedy == Remedy::wait);
  state.moved_to = "10.0.0.9";
  CHECK(choose_remedy(state, looks, &server, false, true).remedy == Remedy::remount);
  CHECK(choose_remedy(state, looks, &server, false, false).remedy == Remedy::wait);
  CHECK(choose_remedy(state, looks, nullptr, false, true).remedy == Remedy::wait);
}

TEST_CASE("what has an error is never called well, and what is well is not waited for") {
  const auto server = test::good_server();
  for (int number = 0; number <= static_cast<int>(Health::failed); ++number)
    for (const bool differs : {false, true}) {
      auto state = state_of(static_cast<Health>(number));
      if (differs)
        state.differences = {{"vers", "vers=4.2", "vers=3", true}};
      if (state.health == Health::backgrounding)
        state.pending = PendingMount{99, "storage1:/mnt/share", "/data/share", "bg"};
      CAPTURE(to_string(state.health), differs);
      const auto decision = choose_remedy(state, std::vector<Health>(3, state.health), &server, false);
      if (has_errors(decision.diagnoses))
        CHECK(decision.remedy == Remedy::wait);
      if (decision.remedy == Remedy::wait)
        CHECK_FALSE(decision.diagnoses.empty());
    }
}

TEST_CASE("a mount that recover only unmounts is brought back by a command that works as it stands") {
  const auto note = [](bool configured) {
    Host machine(ETIMEDOUT);
    machine.system.machine.nfs["storage1"] = test::dead_server();
    if (!configured)
      machine.wanted.clear();
    return machine.plan(true).plan.notes.back();
  };
  CHECK(note(true) == "share: its server is away, so it is only unmounted; `sharefs mount share` brings it back");
  CHECK(note(false) == "/data/share: its server is away, so it is only unmounted; `sharefs undo` brings it back");
  auto gone = state_of(Health::missing);
  gone.mount.reset();
  CHECK(check_recovered(state_of(Health::stale), gone).at(0).fix == "sharefs mount share");
  auto unknown = state_of(Health::stale);
  unknown.wanted = false; // `sharefs mount` knows only what sharefs.yaml has
  CHECK(check_recovered(unknown, gone).at(0).fix.empty());
}

TEST_CASE("only doubtful mounts are asked again") {
  Observation seen;
  seen.servers["storage1"] = test::good_server();
  for (const auto health : {Health::healthy, Health::stale, Health::hung, Health::missing}) {
    seen.states.push_back(state_of(health));
    seen.states.back().point.target = to_string(health);
  }
  CHECK(find_doubtful(seen) == std::vector<MountState*>{&seen.states[1], &seen.states[2]});
  seen.servers["storage1"] = test::dead_server();
  CHECK(find_doubtful(seen) == std::vector<MountState*>{&seen.states[1]});
}

TEST_CASE("a stale mount is detached and mounted again as configured") {
  Host machine(ESTALE);
  const auto plan = machine.plan();
  CHECK(actions_of(plan.plan) ==
        std::vector<std::string>{"unmount /data/share (lazy)", "mount storage1:/mnt/share on /data/share"});
  CHECK(plan.plan.steps[0].group == plan.plan.steps[1].group);
  CHECK(std::get<plan::Mount>(plan.plan.steps[1].action).options ==
        "rw,hard,nosuid,nodev,vers=4.2,proto=tcp,nconnect=4");
  CHECK(plan.planned == std::vector<std::string>{"/data/share"});
}

TEST_CASE("the holders of a stale mount are reported") {
  Host machine(ESTALE);
  machine.holders["/data/share"].holders = {{42, "python", {"cwd /data/share"}}};
  const auto plan = machine.plan();
  CHECK(actions_of(plan.plan)[0] == "unmount /data/share (lazy)");
  REQUIRE(plan.plan.notes.size() == 2);
  CHECK(plan.plan.notes[0] == "/data/share is in use by pid 42 (python): cwd /data/share");
}

TEST_CASE("a hung mount of a dead server waits; --force only unmounts it") {
  Host machine(ETIMEDOUT);
  machine.system.machine.nfs["storage1"] = test::dead_server();
  machine.looks["/data/share"] = {Health::hung};
  const auto waiting = machine.plan();
  CHECK(waiting.plan.empty());
  CHECK(waiting.blocked.size() == 1);
  REQUIRE(has_code(waiting.diagnoses, "SF212"));
  CHECK(waiting.diagnoses[0].message.find("nothing was changed") != std::string::npos);
  const auto forced = machine.plan(true);
  CHECK(actions_of(forced.plan) == std::vector<std::string>{"unmount /data/share (force, lazy)"});
  CHECK(forced.only_unmounted == std::vector<std::string>{"/data/share"});
}

TEST_CASE("a mount that nobody configured comes back as it was") {
  Host machine(ESTALE);
  machine.wanted.clear();
  const auto plan = machine.plan();
  REQUIRE(plan.plan.steps.size() == 2);
  const auto& mount = std::get<plan::Mount>(plan.plan.steps[1].action);
  CHECK(mount.source == "storage1:/mnt/share");
  CHECK(mount.options.find("rsize=262144") != std::string::npos);
}

TEST_CASE("mounts below a stale one are detached and mounted again with it") {
  Host machine(ESTALE, nfs_line(51, 50, "/data/share/in", "storage1:/mnt/in"));
  machine.system.machine.entries["/data/share/in"] = answered(ESTALE);
  machine.looks["/data/share/in"] = k_three_stale;
  const auto plan = machine.plan();
  CHECK(actions_of(plan.plan) ==
        std::vector<std::string>{"unmount /data/share (lazy)", "mount storage1:/mnt/share on /data/share",
                                 "make directory /data/share/in", "mount storage1:/mnt/in on /data/share/in"});
}

TEST_CASE("nested stale mounts are recovered by the mount tree, whatever comes first in sharefs.yaml") {
  Host machine(ESTALE, nfs_line(51, 50, "/data/share/in", "storage1:/mnt/in"));
  machine.system.machine.entries["/data/share/in"] = answered(ESTALE);
  machine.looks["/data/share/in"] = k_three_stale;
  machine.system.machine.nfs["storage1"] = test::good_server({"/mnt/share", "/mnt/in"});
  machine.wanted = {share("in", "/data/share/in"), share()};
  const auto plan = machine.plan();
  REQUIRE(plan.plan.steps.size() == 4);
  CHECK(actions_of(plan.plan)[0] == "unmount /data/share (lazy)");
  CHECK(actions_of(plan.plan)[3] == "mount storage1:/mnt/in on /data/share/in");
  CHECK(plan.blocked.empty());
}

TEST_CASE("a mount below a stale one that must wait waits with it") {
  Host machine(ESTALE, nfs_line(51, 50, "/data/share/in", "storage2:/mnt/in"));
  machine.system.machine.entries["/data/share/in"] = answered(ESTALE);
  machine.looks["/data/share/in"] = k_three_stale;
  machine.system.machine.nfs["storage1"] = test::dead_server();
  machine.system.machine.nfs["storage2"] = test::good_server({"/mnt/in"});
  const auto plan = machine.plan();
  CHECK(plan.plan.empty());
  CHECK(has_code(plan.diagnoses, "SF222"));
}

TEST_CASE("a staged copy over a directory of a stale share goes with it, and is not mounted as a share") {
  Host machine(ESTALE, "51 50 7:0 / /data/share/c4 ro - squashfs /dev/loop0 ro\n");
  machine.staged = {"/data/share/c4"};
  CHECK(actions_of(machine.plan().plan).size() == 2);
}

TEST_CASE("something else below a stale mount is not lost") {
  Host machine(ESTALE, "51 50 0:9 / /data/share/tmp rw - tmpfs tmpfs rw\n");
  const auto plan = machine.plan();
  CHECK(plan.plan.empty());
  CHECK(has_code(plan.diagnoses, "SF224"));
  CHECK(plan.diagnoses.back().hint.ends_with("`sharefs mount share` brings the share back"));
  machine.wanted.clear(); // somebody mounted it by hand
  CHECK(machine.plan().diagnoses.back().hint.ends_with("`sharefs undo` brings the share back"));
  CHECK(plan.blocked.size() == 1);
}

TEST_CASE("a stale mount whose export is closed to us is not unmounted") {
  Host machine(ESTALE);
  machine.system.machine.nfs["storage1"].access = {{"/mnt/share", false, "access denied by server"}};
  const auto plan = machine.plan();
  CHECK(plan.plan.empty());
  CHECK(has_code(plan.diagnoses, "SF203"));
}

TEST_CASE(
    "a stale mount that is neither exported nor in sharefs.yaml any more can be unmounted, and the user is told") {
  Host machine(ESTALE);
  machine.system.machine.nfs["storage1"] = test::good_server({"/mnt/other"});
  CHECK(machine.plan().diagnoses.at(0).hint.find("umount") == std::string::npos);
  machine.wanted.clear();
  const auto plan = machine.plan();
  CHECK(plan.plan.empty());
  CHECK(plan.diagnoses.at(0).code == "SF202");
  CHECK(
      plan.diagnoses.at(0).hint.ends_with("; `sharefs umount /data/share` takes it away if nobody needs it any more"));
}

TEST_CASE("what is missing is mounted: a recovery that was cut off is completed") {
  Host machine(0);
  machine.system.machine.mounts = test::table_of("");
  test::add_directory(machine.system, "/data", {"share"});
  test::add_directory(machine.system, "/data/share");
  const auto plan = machine.plan();
  CHECK(actions_of(plan.plan) == std::vector<std::string>{"mount storage1:/mnt/share on /data/share"});
  CHECK(plan.planned.size() == 1);
}

TEST_CASE("well is left alone") {
  Host machine(0);
  const auto plan = machine.plan(true);
  CHECK(plan.plan.empty());
  CHECK(plan.right == std::vector<std::string>{"/data/share"});
}

TEST_CASE("after the recovery") {
  const auto before = state_of(Health::stale);
  auto after = state_of(Health::healthy);
  CHECK(check_recovered(before, after).empty());
  after.health = Health::stale;
  REQUIRE(has_code(check_recovered(before, after), "SF226"));
  CHECK(check_recovered(before, after)[0].message.find("old superblock") != std::string::npos);
  after.mount->minor = 99;
  CHECK(check_recovered(before, after)[0].message.find("old superblock") == std::string::npos);
  after.mount.reset();
  CHECK(has_code(check_recovered(before, after), "SF217"));
  after.health = Health::here; // the server's own directory, which is bound
  CHECK(check_recovered(before, after).empty());
}
