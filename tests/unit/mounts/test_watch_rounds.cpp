#include "mounts/watch/rounds.hpp"
#include "samples.hpp"
#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

using namespace sharefs;
using namespace sharefs::mounts;
using namespace sharefs::mounts::watch;
using namespace std::chrono_literals;

namespace {

/// The rounds of a machine whose only share is stale, and what they log.
struct Watch {
  test::TemporaryDirectory state;
  test::ScriptedSystem system;
  sys::Files files{state.path()};
  plan::Journal journal{files, "/state"};
  std::vector<std::string> lines;
  Rounds rounds{system, [this] { return journal; }, [this](const LogLine& line) { lines.push_back(line.message); }};

  Watch() {
    set_mounted(true);
    system.machine.identity.boot_id = "this boot";
    system.machine.nfs["storage1"] = test::good_server();
    system.machine.entries["/data/share"] = test::answered(ESTALE);
    test::leave_rest_missing(system);
    rounds.set_mounts({test::share()}, Policy::stale);
  }
  void set_mounted(bool mounted) {
    system.machine.mounts = test::table_of(mounted ? test::nfs_line(50, 1, "/data/share", "storage1:/mnt/share",
                                                                    test::k_v42_super, "rw,nosuid,nodev,relatime")
                                                   : "");
  }
  /// Writes a journal entry whose first step is done, and returns its id. The others have failed, or, unless the run
  /// has `ended`, it is still at work.
  std::string add_entry(const std::vector<plan::Action>& actions, bool ended = true) {
    plan::Plan plan;
    plan::Report report;
    for (const auto& action : actions) {
      report.results.push_back(
          {report.results.size(), actions.size() == 1 ? plan::Outcome::done : plan::Outcome::failed, {}});
      plan.add("/data/share", "", action);
    }
    auto identity = system.machine.identity;
    if (!ended) // the run of an entry is at work as long as its process lives
      std::tie(identity.pid, identity.boot_id) = std::tuple(::getpid(), sys::own_boot_id());
    const auto id = journal.begin(plan, "sharefs", identity, {}, {0, actions.front()});
    REQUIRE(id);
    if (ended) {
      REQUIRE(journal.end_step(*id, {0, plan::Outcome::done, {}}));
      REQUIRE(journal.end(*id, report));
    }
    return *id;
  }
  std::vector<std::string> check(Time now) {
    const auto chosen = rounds.check_mounts(now);
    REQUIRE(chosen.has_value());
    return *chosen;
  }
};

} // namespace

TEST_CASE("the runs of all mounts together have a limit in each window", "[rounds]") {
  Watch watch;
  const Time begin{1h};
  for (std::size_t run = 0; run < k_most_runs; ++run)
    watch.rounds.add_run({"another"}, {}, begin + std::chrono::seconds(run));
  watch.rounds.add_run({"another"}, {.busy = true, .message = {}}, begin + 1min); // nothing was tried
  CHECK(watch.check(begin + k_run_window - 1ms).empty());
  CHECK(watch.lines.back().find("there were 6 recoveries in 10 min 0 s") != std::string::npos);
  CHECK(watch.check(begin + k_run_window) == std::vector<std::string>{"share"});
  watch.rounds.add_run({"share"}, {}, begin + k_run_window);
  CHECK(watch.rounds.facts().mounts.at(0).tries.attempts == 1);
}

TEST_CASE("a mount whose line has moved in sharefs.yaml is the same mount", "[rounds]") {
  Watch watch;
  watch.check(Time{1h});
  const auto logged = watch.lines.size();
  auto moved = test::share();
  moved.origin = "/etc/sharefs/sharefs.yaml:99";
  watch.rounds.set_mounts({moved}, Policy::stale);
  const auto& mount = watch.rounds.facts().mounts.at(0);
  CHECK(mount.problem == Problem::stale);
  CHECK(mount.checks == 1);
  CHECK(mount.point.origin == moved.origin);
  watch.rounds.set_mounts({test::share("other")}, Policy::stale);
  CHECK(watch.rounds.facts().mounts.at(0).checks == 0);
  CHECK(watch.lines.size() == logged);
}

TEST_CASE("mounts that connect again later than their server answers are asked every ten seconds", "[rounds]") {
  Watch watch;
  const Time begin{1h};
  watch.system.machine.nfs["storage1"] = test::dead_server();
  watch.system.machine.entries["/data/share"] = test::answered(ETIMEDOUT);
  for (const auto when : {0s, 30s, 90s, 210s}) // the pause doubles
    watch.check(begin + when);
  CHECK(watch.rounds.facts().mounts.at(0).hung == 4);
  watch.system.machine.nfs["storage1"] = test::good_server();
  watch.check(begin + 220s); // at once, and too early
  CHECK(watch.rounds.facts().mounts.at(0).hung == 5);
  watch.system.machine.entries["/data/share"] = test::answered();
  watch.check(begin + 229s);
  CHECK_FALSE(watch.rounds.all_well());
  watch.check(begin + 230s);
  CHECK(watch.rounds.all_well());
}

TEST_CASE("what sharefs did to a mount counts until it was mounted again, and until the next boot", "[rounds]") {
  plan::Unmount unmount;
  plan::Mount mount;
  unmount.target = mount.target = "/data/share";
  const auto is_recovered = [](Watch& watch, Policy policy) {
    watch.rounds.set_mounts({test::share()}, policy);
    watch.set_mounted(false);
    const Time begin{1h};
    watch.check(begin);
    return !watch.check(begin + 1s).empty();
  };
  SECTION("unmounted, mounted otherwise, then lost") {
    Watch watch;
    watch.add_entry({unmount});
    watch.check(Time{30min});
    CHECK(is_recovered(watch, Policy::all));
  }
  SECTION("a recovery failed, mounted by hand, then unmounted by hand") {
    Watch watch;
    watch.add_entry({unmount, mount});
    watch.check(Time{30min});
    CHECK_FALSE(is_recovered(watch, Policy::stale));
  }
  SECTION("unmounted after it was seen") {
    Watch watch;
    watch.check(Time{30min});
    watch.add_entry({unmount});
    CHECK_FALSE(is_recovered(watch, Policy::all));
  }
  SECTION("a recovery has failed after it was seen") {
    Watch watch;
    watch.check(Time{30min});
    watch.add_entry({unmount, mount});
    CHECK(is_recovered(watch, Policy::stale));
  }
  SECTION("seen while a run was about to unmount it") {
    Watch watch;
    watch.system.machine.identity.boot_id = sys::own_boot_id();
    watch.add_entry({unmount}, false);
    watch.check(Time{30min});
    CHECK_FALSE(is_recovered(watch, Policy::all));
  }
  SECTION("before this boot") {
    Watch watch;
    watch.add_entry({unmount});
    watch.system.machine.identity.boot_id = "the next boot";
    CHECK(is_recovered(watch, Policy::all));
    Watch cut_off;
    cut_off.add_entry({unmount, mount});
    cut_off.system.machine.identity.boot_id = "the next boot";
    CHECK_FALSE(is_recovered(cut_off, Policy::stale));
  }
}
