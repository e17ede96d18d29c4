#include "support/catch.hpp"
#include "watch/decide.hpp"

using namespace sharefs::watch;
using namespace std::chrono_literals;

namespace {

const Time k_now{std::chrono::hours(1)};

SeenMount seen_mount(Trouble trouble, LastChange last = LastChange::none, std::size_t looks = k_missing_looks) {
  return {"/data/share", "share", "a state", trouble, true, looks, last};
}

bool recovers(const SeenMount& seen, Policy policy, const Pace& pace = {}) {
  return decide(seen, policy, pace, k_now).recover;
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
    CHECK(recovers(seen_mount(row.trouble, row.last), Policy::stale) == row.stale);
    CHECK(recovers(seen_mount(row.trouble, row.last), Policy::all) == row.all);
    CHECK(!recovers(seen_mount(row.trouble, row.last), Policy::never));
    for (const auto policy : {Policy::stale, Policy::all, Policy::never})
      CHECK(decide(seen_mount(row.trouble, row.last), policy, {}, k_now).why.empty() == (row.trouble == Trouble::none));
  }
}

TEST_CASE("decide: nothing while the server is away", "[decide]") {
  auto seen = seen_mount(Trouble::stale);
  seen.server_there = false;
  CHECK(decide(seen, Policy::all, {}, k_now) == Decision{false, "its server does not answer"});
}

TEST_CASE("decide: what is missing is looked at twice, but for what was cut off", "[decide]") {
  CHECK(!recovers(seen_mount(Trouble::missing, LastChange::none, 1), Policy::all));
  CHECK(recovers(seen_mount(Trouble::missing, LastChange::cut_off, 1), Policy::all));
}

TEST_CASE("decide: the pace of the mount and that of all", "[decide]") {
  Pace pace;
  pace.tried({"/data/share"}, k_now - 1s);
  CHECK(decide(seen_mount(Trouble::stale), Policy::stale, pace, k_now) ==
        Decision{false, "it was tried 1 time; the next one 30.0 s after the last"});
  CHECK(decide(seen_mount(Trouble::stale), Policy::stale, pace, k_now + 29s).recover);
  Pace busy;
  for (std::size_t run = 0; run < k_most_runs; ++run)
    busy.tried({"/other"}, k_now);
  CHECK(decide(seen_mount(Trouble::stale), Policy::stale, busy, k_now).why.starts_with("there were 6 recoveries"));
}

TEST_CASE("policy_of", "[decide]") {
  CHECK(policy_of("stale") == Policy::stale);
  CHECK(policy_of("all") == Policy::all);
  CHECK(policy_of("never") == Policy::never);
}
