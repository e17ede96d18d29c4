#include "mounts/watch/decide.hpp"

#include "base/text.hpp"

#include <fmt/format.h>

namespace sharefs::mounts::watch {

namespace {

/// Why the policy leaves it alone; "" if it does not.
std::string refused(Trouble trouble, LastChange last, Policy policy) {
  switch (trouble) {
  case Trouble::hung:
    return "it waits for its server, and goes on by itself when that answers it";
  case Trouble::other:
    return "see `sharefs status`";
  case Trouble::missing:
    if (last == LastChange::taken_away)
      return "it was unmounted by `sharefs umount`";
    if (policy == Policy::stale && last != LastChange::cut_off)
      return "watch.recover is stale, and nothing of sharefs was cut off";
    break;
  case Trouble::moved:
    if (policy == Policy::stale)
      return "its server's name leads to another address, and watch.recover is stale, not all";
    break;
  case Trouble::stale:
  case Trouble::none:
    break;
  }
  return policy == Policy::never ? "watch.recover is never" : "";
}

std::string reason(Trouble trouble, LastChange last) {
  switch (trouble) {
  case Trouble::missing:
    return last == LastChange::cut_off ? "what sharefs began was cut off or failed: it goes on"
                                       : "nothing is mounted there";
  case Trouble::moved:
    return "it hangs at an address that its server's name no longer leads to";
  default:
    return "the server no longer knows what was mounted, and answers";
  }
}

} // namespace

Trouble trouble_of(const MountState& state) {
  switch (state.health) {
  case Health::healthy:
  case Health::slow:
  case Health::autofs_idle:
  case Health::here:
    return Trouble::none;
  case Health::stale:
    return Trouble::stale;
  case Health::missing: // or a directory of this server's own, which only a person can bring back
    return state.point.is_in_place() ? Trouble::other : Trouble::missing;
  case Health::hung:
    return state.moved_to.empty() ? Trouble::hung : Trouble::moved;
  default:
    return Trouble::other;
  }
}

Policy policy_of(const std::string& word) {
  return word == "all" ? Policy::all : word == "never" ? Policy::never : Policy::stale;
}

WatchDecision decide(const Watched& mount, bool server_there, LastChange last, Policy policy, const Pace& pace,
                     Time now) {
  if (mount.is_well())
    return {};
  if (auto why = refused(mount.trouble, last, policy); !why.empty())
    return {false, std::move(why)};
  if (!server_there)
    return {false, "its server does not answer"};
  if (mount.trouble == Trouble::missing && last != LastChange::cut_off && mount.looks < k_missing_looks)
    return {false, "it is looked at once more: what mounts it at boot comes first"};
  const auto& target = mount.point.target;
  if (pace.next(target) > now)
    return {false,
            fmt::format("it was tried {}; the next one {} after the last", count_of(pace.attempts(target), "time"),
                        format_duration(pause_after(pace.attempts(target)) / std::chrono::microseconds(1)))};
  if (pace.next_run(now) > now)
    return {false, fmt::format("there were {} recoveries in {}; the next one later", k_most_runs,
                               format_duration(k_run_window / std::chrono::microseconds(1)))};
  return {true, reason(mount.trouble, last)};
}

} // namespace sharefs::mounts::watch
