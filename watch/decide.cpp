#include "watch/decide.hpp"

#include "base/text.hpp"

#include <fmt/format.h>

namespace sharefs::watch {

namespace {

/// Why the policy leaves it alone; "" if it does not.
std::string refused(const SeenMount& seen, Policy policy) {
  const bool unfinished = seen.last == LastChange::cut_off;
  switch (seen.trouble) {
  case Trouble::hung:
    return "it waits for its server, and goes on by itself when that answers it";
  case Trouble::other:
    return "see `sharefs status`";
  case Trouble::missing:
    if (seen.last == LastChange::taken_away)
      return "it was unmounted by `sharefs umount`";
    if (policy == Policy::stale && !unfinished)
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

std::string reason(const SeenMount& seen) {
  switch (seen.trouble) {
  case Trouble::missing:
    return seen.last == LastChange::cut_off ? "what sharefs began was cut off or failed: it goes on"
                                            : "nothing is mounted there";
  case Trouble::moved:
    return "it hangs at an address that its server's name no longer leads to";
  default:
    return "the server no longer knows what was mounted, and answers";
  }
}

} // namespace

Policy policy_of(const std::string& word) {
  return word == "all" ? Policy::all : word == "never" ? Policy::never : Policy::stale;
}

Decision decide(const SeenMount& seen, Policy policy, const Pace& pace, Time now) {
  if (seen.trouble == Trouble::none)
    return {};
  if (auto why = refused(seen, policy); !why.empty())
    return {false, std::move(why)};
  if (!seen.server_there)
    return {false, "its server does not answer"};
  if (seen.trouble == Trouble::missing && seen.last != LastChange::cut_off && seen.looks < k_missing_looks)
    return {false, "it is looked at once more: what mounts it at boot comes first"};
  if (const auto next = pace.next(seen.target); next > now)
    return {false,
            fmt::format("it was tried {}; the next one {} after the last", count_of(pace.attempts(seen.target), "time"),
                        format_duration(pause_after(pace.attempts(seen.target)) / std::chrono::microseconds(1)))};
  if (const auto next = pace.next_run(now); next > now)
    return {false, fmt::format("there were {} recoveries in {}; the next one later", k_most_runs,
                               format_duration(k_run_window / std::chrono::microseconds(1)))};
  return {true, reason(seen)};
}

} // namespace sharefs::watch
