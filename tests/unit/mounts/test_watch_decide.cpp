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

Looked looked_at(Trouble trouble, LastChange last = LastChange::none, std::size_t looks = k_missing_looks) {
  Looked looked{{}, last};
  looked.mount.point.target = "/data/share";
  looked.mount.trouble = trouble;
  looked.mount.looks = looks;
  return looked;
}

WatchDecision decide_on(const Looked& looked, Policy policy, const Pace& pace = {}, Time now = k_now) {
  return decide(looked.mount, looked.server_there, looked.last, policy, pace, now);
}

bool recovers(const Looked& looked, Policy policy) {
  return decide_on(looked, policy).recover;
}

} // namespace

TEST_CASE("decide: what each policy recovers", "[decide]") {
  struct Row {
    Trouble trouble;
    LastChange last;
    bool stale, all;
  };
  const Row rows[] = {
      {Trouble::none, LastChange::none, false, false},          {Trouble::stale, LastChange::none, true, true},
      {Trouble::missing, LastChange::none, false, true},        {Trouble::missing, LastChange::cut_off, true, true},
      {Trouble::missing, LastChange::taken_away, false, false}, {Trouble::moved, LastChange::none, false, true},
      {Trouble::hung, LastChange::none, false, false},          {Trouble::other, LastChange::none, false, false},
  };
  for (const auto& row : rows) {
    INFO("trouble " << static_cast<int>(row.trouble) << ", last change " << static_cast<int>(row.last));
    CHECK(recovers(looked_at(row.trouble, row.last), Policy::stale) == row.stale);
    CHECK(recovers(looked_at(row.trouble, row.last), Policy::all) == row.all);
    CHECK(!recovers(looked_at(row.trouble, row.last), Policy::never));
    for (const auto policy : {Policy::stale, Policy::all, Policy::never})
      CHECK(decide_on(looked_at(row.trouble, row.last), policy).why.empty() == (row.trouble == Trouble::none));
  }
}

TEST_CASE("decide: nothing while the server is away", "[decide]") {
  auto looked = looked_at(Trouble::stale);
  looked.server_there = false;
  CHECK(decide_on(looked, Policy::all) == WatchDecision{false, "its server does not answer"});
}

TEST_CASE("decide: what is missing is looked at twice, but for what was cut off", "[decide]") {
  CHECK(!recovers(looked_at(Trouble::missing, LastChange::none, 1), Policy::all));
  CHECK(recovers(looked_at(Trouble::missing, LastChange::cut_off, 1), Policy::all));
}

TEST_CASE("decide: the pace of the mount and that of all", "[decide]") {
  Pace pace;
  pace.tried({"/data/share"}, k_now - 1s);
  CHECK(decide_on(looked_at(Trouble::stale), Policy::stale, pace, k_now) ==
        WatchDecision{false, "it was tried 1 time; the next one 30.0 s after the last"});
  CHECK(decide_on(looked_at(Trouble::stale), Policy::stale, pace, k_now + 29s).recover);
  Pace busy;
  for (std::size_t run = 0; run < k_most_runs; ++run)
    busy.tried({"/other"}, k_now);
  CHECK(decide_on(looked_at(Trouble::stale), Policy::stale, busy, k_now).why.starts_with("there were 6 recoveries"));
}

TEST_CASE("policy_of", "[decide]") {
  CHECK(policy_of("stale") == Policy::stale);
  CHECK(policy_of("all") == Policy::all);
  CHECK(policy_of("never") == Policy::never);
}

TEST_CASE("trouble_of: what a mount's state means for a recovery", "[decide]") {
  MountState state;
  const auto trouble = [&state](Health health) {
    state.health = health;
    return trouble_of(state);
  };
  for (const auto health : {Health::healthy, Health::slow, Health::autofs_idle, Health::here})
    CHECK(trouble(health) == Trouble::none);
  for (const auto health : {Health::full, Health::denied, Health::read_only, Health::wrong_source,
                            Health::backgrounding, Health::unknown, Health::failed, Health::looped})
    CHECK(trouble(health) == Trouble::other);
  CHECK(trouble(Health::stale) == Trouble::stale);
  CHECK(trouble(Health::missing) == Trouble::missing);
  CHECK(trouble(Health::hung) == Trouble::hung);
  state.moved_to = "10.0.0.2";
  CHECK(trouble(Health::hung) == Trouble::moved);
  state.point.here = true; // this server's own directory: nothing can be mounted there
  state.point.path = state.point.target = "/srv/share";
  CHECK(trouble(Health::missing) == Trouble::other);
}
