#include "mounts/watch/decide.hpp"

#include "base/text.hpp"

#include <fmt/format.h>

namespace sharefs::mounts::watch {

namespace {

/// Returns why the policy does not allow a recovery; "" if it does.
std::string policy_refusal(Problem problem, LastChange last, Policy policy) {
  switch (problem) {
  case Problem::hung:
    return "it waits for its server, and goes on by itself when that answers it";
  case Problem::other:
    return "see `sharefs status`";
  case Problem::missing:
    if (last == LastChange::unmounted)
      return "it was unmounted by `sharefs umount`";
    if (policy == Policy::stale && last != LastChange::interrupted)
      return "watch.recover is stale, and nothing of sharefs was cut off";
    break;
  case Problem::moved:
    if (policy == Policy::stale)
      return "its server's name leads to another address, and watch.recover is stale, not all";
    break;
  case Problem::stale:
  case Problem::none:
    break;
  }
  return policy == Policy::never ? "watch.recover is never" : "";
}

std::string recovery_reason(Problem problem, LastChange last) {
  switch (problem) {
  case Problem::missing:
    return last == LastChange::interrupted ? "what sharefs began was cut off or failed: it goes on"
                                           : "nothing is mounted there";
  case Problem::moved:
    return "it hangs at an address that its server's name no longer leads to";
  default:
    return "the server no longer knows what was mounted, and answers";
  }
}

} // namespace

Problem problem_of(const MountState& state) {
  switch (state.health) {
  case Health::healthy:
  case Health::slow:
  case Health::autofs_idle:
  case Health::here:
    return Problem::none;
  case Health::stale:
    return Problem::stale;
  case Health::missing: // a missing directory of this server itself can only be brought back by a person
    return state.point.is_in_place() ? Problem::other : Problem::missing;
  case Health::hung:
    return state.moved_to.empty() ? Problem::hung : Problem::moved;
  default:
    return Problem::other;
  }
}

Policy parse_policy(const std::string& word) {
  return word == "all" ? Policy::all : word == "never" ? Policy::never : Policy::stale;
}

WatchDecision decide(const Watched& mount, bool server_there, LastChange last, Policy policy, const Pace& pace,
                     Time now) {
  if (mount.is_well())
    return {};
  if (auto why = policy_refusal(mount.problem, last, policy); !why.empty())
    return {false, std::move(why)};
  if (!server_there)
    return {false, "its server does not answer"};
  if (mount.problem == Problem::missing && last != LastChange::interrupted && mount.checks < k_missing_checks)
    return {false, "it is checked once more: what mounts it at boot comes first"};
  const auto& target = mount.point.target;
  if (pace.next_attempt(target) > now)
    return {false,
            fmt::format("it was tried {}; the next one {} after the last", count_of(pace.attempts(target), "time"),
                        format_duration(pause_after(pace.attempts(target)) / std::chrono::microseconds(1)))};
  if (pace.next_run(now) > now)
    return {false, fmt::format("there were {} recoveries in {}; the next one later", k_most_runs,
                               format_duration(k_run_window / std::chrono::microseconds(1)))};
  return {true, recovery_reason(mount.problem, last)};
}

} // namespace sharefs::mounts::watch
