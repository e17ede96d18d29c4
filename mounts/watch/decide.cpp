#include "mounts/watch/decide.hpp"

#include "base/text.hpp"

#include <algorithm>
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

WatchDecision decide(const Watched& mount, bool server_there, LastChange last, Policy policy, Time next_run, Time now) {
  if (mount.is_well())
    return {};
  if (auto why = policy_refusal(mount.problem, last, policy); !why.empty())
    return {false, std::move(why)};
  if (!server_there)
    return {false, "its server does not answer"};
  if (mount.problem == Problem::missing && last != LastChange::interrupted && mount.checks < k_missing_checks)
    return {false, "it is checked once more: what mounts it at boot comes first"};
  const auto& tries = mount.tries;
  const auto pause = pause_after(tries.attempts);
  if (tries.attempts > 0 && tries.last + pause > now)
    return {false, fmt::format("it was tried {}; the next one {} after the last", count_of(tries.attempts, "time"),
                               format_duration(pause / std::chrono::microseconds(1)))};
  if (next_run > now)
    return {false, fmt::format("there were {} recoveries in {}; the next one later", k_most_runs,
                               format_duration(k_run_window / std::chrono::microseconds(1)))};
  return {true, recovery_reason(mount.problem, last)};
}

std::chrono::seconds pause_after(std::size_t attempt) {
  std::chrono::seconds pause = k_first_pause;
  for (std::size_t number = 1; number < attempt && pause < k_longest_pause; ++number)
    pause *= 2;
  return std::min<std::chrono::seconds>(pause, k_longest_pause);
}

void Tries::add_check(bool well, Time now) {
  if (!well)
    well_since = {};
  else if (well_since == Time{})
    well_since = now;
  else if (now - well_since >= k_forgiven_after)
    attempts = 0;
}

void add_last_changes(const plan::JournalEntry& entry, std::set<std::string>& targets,
                      std::map<std::string, LastChange>& changes) {
  // The steps of a plan for one target, by their numbers.
  struct Steps {
    std::optional<std::size_t> unmount, mount;
  };
  std::map<std::string, Steps> found;
  for (std::size_t step = 0; step < entry.plan.steps.size(); ++step) {
    const auto& action = entry.plan.steps[step].action;
    if (const auto* unmount = std::get_if<plan::Unmount>(&action))
      found[unmount->target].unmount = step;
    else if (const auto* mount = std::get_if<plan::Mount>(&action))
      found[mount->target].mount = step;
  }
  const auto took_effect = [&entry](std::optional<std::size_t> step) {
    return step && entry.steps[*step].took_effect();
  };
  for (const auto& [target, steps] : found) {
    const bool mounted = steps.mount && is_good(entry.steps[*steps.mount].outcome);
    // An attempt to mount that failed changes nothing about what was begun before it.
    const bool changed = took_effect(steps.unmount) || (mounted && took_effect(steps.mount));
    if (!changed || targets.erase(target) == 0 || entry.state == plan::JournalState::undone)
      continue;
    if (steps.unmount && steps.mount && !mounted)
      changes[target] = LastChange::interrupted;
    else if (steps.unmount && !steps.mount)
      changes[target] = LastChange::unmounted;
  }
}

std::map<std::string, LastChange> read_last_changes(const plan::Journal& journal,
                                                    const std::map<std::string, std::string>& settled_by_target,
                                                    const std::string& boot_id) {
  std::map<std::string, LastChange> changes;
  std::set<std::string> remaining;
  for (const auto& [target, settled] : settled_by_target)
    remaining.insert(target);
  [[maybe_unused]] const auto read = journal.for_each([&](const plan::JournalEntry& entry) {
    std::erase_if(remaining, [&](const std::string& target) { return settled_by_target.at(target) == entry.id; });
    if (!remaining.empty() && entry.boot_id == boot_id)
      add_last_changes(entry, remaining, changes);
  });
  return changes;
}

} // namespace sharefs::mounts::watch
