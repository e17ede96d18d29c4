#include "plan/journal.hpp"

#include <algorithm>
#include <set>

namespace sharefs::plan {

namespace {

/// True for a tool that only checks (`silent`), and for a SetAccess with equal sides.
bool changes_nothing(const Action& action) {
  if (const auto* tool = std::get_if<RunTool>(&action))
    return tool->silent;
  const auto* access = std::get_if<SetAccess>(&action);
  return access != nullptr && access->before == access->after;
}

/// Returns the paths of the directories that the entry has made.
std::set<std::string> made_directories(const JournalEntry& entry) {
  std::set<std::string> made;
  for (const auto& step : entry.steps)
    if (const auto* directory = std::get_if<Directory>(&entry.plan.steps[step.step].action);
        directory != nullptr && directory->after && step.took_effect())
      made.insert(directory->path);
  return made;
}

/// True if `begun` is the planned action. Its check has filled in the mode and the access of what it removes.
bool is_same(const Action& planned, const Action& begun) {
  const auto removes_same = [&]<class A>(const A* one) {
    const auto* other = std::get_if<A>(&begun);
    return one != nullptr && other != nullptr && !one->after && !other->after && one->path == other->path &&
           one->actor == other->actor;
  };
  return planned == begun || removes_same(std::get_if<Directory>(&planned)) ||
         removes_same(std::get_if<File>(&planned));
}

/// Removes the steps that `attempt`, an earlier undo of the same entry, has already done.
void leave_out_done(std::vector<Step>& steps, const JournalEntry& attempt) {
  for (const auto& done : attempt.steps) {
    const auto& action = attempt.plan.steps[done.step].action;
    if (!is_good(done.outcome) || is_harmless(action))
      continue;
    const auto found = std::ranges::find_if(steps, [&](const Step& step) { return is_same(step.action, action); });
    if (found != steps.end())
      steps.erase(found);
  }
}

} // namespace

Plan plan_undo(const JournalEntry& entry, const std::vector<JournalEntry>& attempts) {
  Plan plan;
  plan.undoes = entry.id;
  plan.unnamed_last = !entry.plan.unnamed_last;
  std::vector<Step> reloads; // in reverse order, as the steps
  const bool has_deleted = entry.has_deleted();
  const auto made = made_directories(entry);
  for (auto step = entry.steps.rbegin(); step != entry.steps.rend(); ++step) {
    if (!step->took_effect())
      continue;
    const auto& [group, why, action, stays, bookkeeping, stays_deleted] = entry.plan.steps[step->step];
    if (stays || (stays_deleted && has_deleted))
      continue;
    // A directory that this entry made goes with its access, or stays with it, because users have put files there: the
    // access of before could open these to everybody.
    if (const auto* access = std::get_if<SetAccess>(&action); access != nullptr && made.contains(access->path))
      continue;
    const auto is_same = [&group = group, &action = action](const Step& reload) {
      return reload.group == group && reload.action == action;
    };
    const auto inverse = invert(action);
    if (!inverse)
      plan.notes.push_back("cannot be undone: " + describe(action));
    else if (changes_nothing(*inverse))
      continue;
    else if (!is_harmless(action))
      plan.steps.push_back({group, "undo: " + why, *inverse, false, bookkeeping});
    else if (std::ranges::none_of(reloads, is_same))
      reloads.push_back({group, why, action});
  }
  for (const auto& attempt : attempts)
    if (attempt.state != JournalState::undone)
      leave_out_done(plan.steps, attempt);
  // A reload alone would change nothing. After an earlier attempt it may be all that is missing.
  if (!plan.steps.empty() || !attempts.empty())
    plan.steps.insert(plan.steps.end(), reloads.rbegin(), reloads.rend());
  return plan;
}

} // namespace sharefs::plan
