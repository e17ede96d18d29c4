#include "mounts/watch/last_change.hpp"

#include <optional>

namespace sharefs::mounts::watch {

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
    const bool changed = took_effect(steps.unmount) || took_effect(steps.mount);
    if (!changed || targets.erase(target) == 0 || entry.state == plan::JournalState::undone)
      continue;
    if (steps.unmount && steps.mount && !is_good(entry.steps[*steps.mount].outcome))
      changes[target] = LastChange::interrupted;
    else if (steps.unmount && !steps.mount)
      changes[target] = LastChange::unmounted;
  }
}

std::map<std::string, LastChange> read_last_changes(const plan::Journal& journal,
                                                    const std::set<std::string>& targets) {
  std::map<std::string, LastChange> changes;
  auto remaining = targets;
  [[maybe_unused]] const auto read = journal.for_each([&](const plan::JournalEntry& entry) {
    if (!remaining.empty())
      add_last_changes(entry, remaining, changes);
  });
  return changes;
}

} // namespace sharefs::mounts::watch
