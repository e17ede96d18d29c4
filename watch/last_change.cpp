#include "watch/last_change.hpp"

#include <optional>

namespace sharefs::watch {

namespace {

/// The end of a step as its entry has it: of one that is not mentioned, it was not begun.
bool was_done(const plan::JournalEntry& entry, std::size_t step) {
  for (const auto& one : entry.steps)
    if (one.step == step)
      return one.ended && (one.outcome == plan::Outcome::done || one.outcome == plan::Outcome::unchanged);
  return false;
}

bool was_begun(const plan::JournalEntry& entry, std::size_t step) {
  for (const auto& one : entry.steps)
    if (one.step == step)
      return one.took_effect();
  return false;
}

} // namespace

void take_entry(const plan::JournalEntry& entry, std::set<std::string>& targets,
                std::map<std::string, LastChange>& changes) {
  // What a plan does to a target, in the order of its steps.
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
  for (const auto& [target, steps] : found) {
    const bool changed =
        (steps.unmount && was_begun(entry, *steps.unmount)) || (steps.mount && was_begun(entry, *steps.mount));
    if (!changed || targets.erase(target) == 0 || entry.state == plan::JournalState::undone)
      continue;
    if (steps.unmount && steps.mount && !was_done(entry, *steps.mount))
      changes[target] = LastChange::cut_off;
    else if (steps.unmount && !steps.mount)
      changes[target] = LastChange::taken_away;
  }
}

std::map<std::string, LastChange> last_changes(const plan::Journal& journal, const std::set<std::string>& targets) {
  std::map<std::string, LastChange> changes;
  auto open = targets;
  [[maybe_unused]] const auto read = journal.each([&](const plan::JournalEntry& entry) {
    if (!open.empty())
      take_entry(entry, open, changes);
  });
  return changes;
}

} // namespace sharefs::watch
