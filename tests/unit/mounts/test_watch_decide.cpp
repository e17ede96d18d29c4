#include "mounts/watch/decide.hpp"
#include "support/catch.hpp"

using namespace sharefs::mounts;
using namespace sharefs::mounts::watch;
using namespace std::chrono_literals;

namespace {

const Time k_now{std::chrono::hours(1)};

struct Looked {
  Watched mount;
  LastChange last = LastChange::none;
  bool server_there = true;
};

Looked looked_at(Problem problem, LastChange last = LastChange::none, std::size_t looks = k_missing_checks) {
  Looked looked{{}, last};
  looked.mount.point.target = "/data/share";
  looked.mount.problem = problem;
  looked.mount.checks = looks;
  return looked;
}

WatchDecision decide_on(const Looked& looked, Policy policy, Time next_run = {}, Time now = k_now) {
  return decide(looked.mount, looked.server_there, looked.last, policy, next_run, now);
}

bool recovers(const Looked& looked, Policy policy) {
  return decide_on(looked, policy).recover;
}

} // namespace

TEST_CASE("decide: what each policy recovers", "[decide]") {
  struct Row {
    Problem problem;
    LastChange last;
    bool stale, all;
  };
  const Row rows[] = {
      {Problem::none, LastChange::none, false, false},         {Problem::stale, LastChange::none, true, true},
      {Problem::missing, LastChange::none, false, true},       {Problem::missing, LastChange::interrupted, true, true},
      {Problem::missing, LastChange::unmounted, false, false}, {Problem::moved, LastChange::none, false, true},
      {Problem::hung, LastChange::none, false, false},         {Problem::other, LastChange::none, false, false},
  };
  for (const auto& row : rows) {
    INFO("problem " << static_cast<int>(row.problem) << ", last change " << static_cast<int>(row.last));
    CHECK(recovers(looked_at(row.problem, row.last), Policy::stale) == row.stale);
    CHECK(recovers(looked_at(row.problem, row.last), Policy::all) == row.all);
    CHECK(!recovers(looked_at(row.problem, row.last), Policy::never));
    for (const auto policy : {Policy::stale, Policy::all, Policy::never})
      CHECK(decide_on(looked_at(row.problem, row.last), policy).why.empty() == (row.problem == Problem::none));
  }
}

TEST_CASE("decide: nothing while the server is away", "[decide]") {
  auto looked = looked_at(Problem::stale);
  looked.server_there = false;
  CHECK(decide_on(looked, Policy::all) == WatchDecision{false, "its server does not answer"});
}

TEST_CASE("decide: what is missing is looked at twice, but for what was cut off", "[decide]") {
  CHECK(!recovers(looked_at(Problem::missing, LastChange::none, 1), Policy::all));
  CHECK(recovers(looked_at(Problem::missing, LastChange::interrupted, 1), Policy::all));
}

TEST_CASE("decide: the pace of the mount and that of all", "[decide]") {
  auto looked = looked_at(Problem::stale);
  looked.mount.tries = {1, k_now - 1s, {}};
  CHECK(decide_on(looked, Policy::stale, {}, k_now) ==
        WatchDecision{false, "it was tried 1 time; the next one 30.0 s after the last"});
  CHECK(decide_on(looked, Policy::stale, {}, k_now + 29s).recover);
  looked.mount.tries.attempts = 2;
  CHECK(decide_on(looked, Policy::stale, {}, k_now + 58s) ==
        WatchDecision{false, "it was tried 2 times; the next one 1 min 0 s after the last"});
  CHECK(decide_on(looked, Policy::stale, {}, k_now + 59s).recover);
  CHECK(decide_on(looked_at(Problem::stale), Policy::stale, k_now + 1s)
            .why.starts_with("there were 6 recoveries in 10 min 0 s"));
  CHECK(decide_on(looked_at(Problem::stale), Policy::stale, k_now).recover);
}

TEST_CASE("policy_of", "[decide]") {
  CHECK(parse_policy("stale") == Policy::stale);
  CHECK(parse_policy("all") == Policy::all);
  CHECK(parse_policy("never") == Policy::never);
}

TEST_CASE("problem_of: what a mount's state means for a recovery", "[decide]") {
  MountState state;
  const auto problem = [&state](Health health) {
    state.health = health;
    return problem_of(state);
  };
  for (const auto health : {Health::healthy, Health::slow, Health::autofs_idle, Health::here})
    CHECK(problem(health) == Problem::none);
  for (const auto health : {Health::full, Health::denied, Health::read_only, Health::wrong_source,
                            Health::backgrounding, Health::unknown, Health::failed, Health::looped})
    CHECK(problem(health) == Problem::other);
  CHECK(problem(Health::stale) == Problem::stale);
  CHECK(problem(Health::missing) == Problem::missing);
  CHECK(problem(Health::hung) == Problem::hung);
  state.moved_to = "10.0.0.2";
  CHECK(problem(Health::hung) == Problem::moved);
  state.point.here = true; // this server's own directory: nothing can be mounted there
  state.point.path = state.point.target = "/srv/share";
  CHECK(problem(Health::missing) == Problem::other);
}
