#include "mounts/watch/rounds.hpp"
#include "samples.hpp"
#include "support/catch.hpp"

using namespace sharefs;
using namespace sharefs::mounts;
using namespace sharefs::mounts::watch;
using namespace std::chrono_literals;

namespace {

/// The rounds of a machine whose only share is stale, and what they log.
struct Watch {
  test::ScriptedSystem system;
  std::vector<std::string> lines;
  Rounds rounds{system, [] { return fail(ErrorCode::not_found, "there is no journal"); },
                [this](const LogLine& line) { lines.push_back(line.message); }};

  Watch() {
    system.machine.mounts = test::table_of(
        test::nfs_line(50, 1, "/data/share", "storage1:/mnt/share", test::k_v42_super, "rw,nosuid,nodev,relatime"));
    system.machine.nfs["storage1"] = test::good_server();
    system.machine.entries["/data/share"] = test::answered(ESTALE);
    test::leave_rest_missing(system);
    rounds.set_mounts({test::share()}, Policy::stale);
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
