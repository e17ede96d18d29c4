// What an undo would meet now: files that have changed since, targets of links that are gone, and users of what it
// removes.
#include "cli/commands/undo/inspect.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "cli/commands/conda/support.hpp"
#include "cli/execute.hpp"
#include "conda/environment.hpp"
#include "plan/check_action.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace sharefs::cli {

namespace {

using plan::JournalEntry;
using plan::JournalState;

/// Notes the files that have changed since the change: undo leaves them as they are. Only apply() would find this out
/// otherwise.
void note_conflicts(Context& context, plan::Plan& plan) {
  std::map<std::string, std::pair<std::optional<std::string>, std::optional<std::string>>>
      files; // the first step of each file
  for (const auto& step : plan.steps)
    if (const auto* file = std::get_if<plan::File>(&step.action); file && !file->actor)
      files.try_emplace(file->path, file->before, file->after);
  for (const auto& [path, texts] : files) {
    const auto now = context.system.files().read_if_exists(path);
    if (now && *now != texts.first && *now != texts.second)
      plan.notes.push_back(
          fmt::format("conflict: {} was {} since, and stays as it is", path, *now ? "changed" : "removed"));
  }
}

/// Removes the steps of files that already are as the undo leaves them, and have no leftover: the write had failed, or
/// somebody has taken it back by hand. Reloads alone go with them, unless an earlier undo may have come this far.
Result<void> drop_undone_files(Context& context, const JournalEntry& entry, plan::Plan& plan) {
  std::map<std::string, plan::Action> last; // the last step of each file
  const auto path_of = [](const plan::Step& step) {
    const auto* file = std::get_if<plan::File>(&step.action);
    return file != nullptr && !file->actor ? file->path : "";
  };
  for (const auto& step : plan.steps)
    if (const auto path = path_of(step); !path.empty())
      last.insert_or_assign(path, step.action);
  std::erase_if(last, [&](const auto& file) {
    const auto checked = plan::check_action(file.second, context.system);
    return !checked || !checked->already;
  });
  if (last.empty())
    return {};
  std::erase_if(plan.steps, [&](const plan::Step& step) { return last.contains(path_of(step)); });
  TRY_ASSIGN(const auto journal, journal_of(context));
  TRY_ASSIGN(const auto attempts, journal.find_undos(entry.id));
  if (attempts.empty() && std::ranges::all_of(plan.steps, plan::is_harmless, &plan::Step::action))
    plan.steps.clear();
  return {};
}

/// Returns a target that is gone, of a link that the plan puts where a directory is or that may only lead to what is
/// there; empty if there is none. Where the directory of the target is missing, too, its share may not be mounted.
std::string find_gone_target(sys::System& system, const plan::Plan& plan) {
  std::set<std::string> made, moved; // by this plan
  sys::EntryRequest request;
  for (const auto& step : plan.steps) {
    const auto* link = std::get_if<plan::Link>(&step.action);
    const auto* rename = std::get_if<plan::Rename>(&step.action);
    const auto* exchange = std::get_if<plan::ExchangeForLink>(&step.action);
    if (rename != nullptr)
      moved.insert(rename->from);
    if (link != nullptr && link->after && (link->checked || moved.contains(link->path)))
      request.queries.push_back({.path = normalize_path(*link->after, parent_path(link->path)), .follow = true});
    if (exchange != nullptr && !exchange->reverse)
      request.queries.push_back({.path = exchange->target, .follow = true});
    for (auto& path : plan::touched_paths(step.action))
      made.insert(std::move(path));
  }
  for (const auto& entry : system.entries(request))
    if (entry.kind == sys::EntryKind::missing && !made.contains(entry.path) &&
        entry.ancestor == parent_path(entry.resolved))
      return entry.resolved;
  return "";
}

/// Returns the newest older change that can be taken back and has other paths than this one; empty if there is none.
std::string find_independent(Context& context, const JournalEntry& entry) {
  std::set<std::string> paths;
  const auto touches = [&paths](const plan::Step& step) {
    return std::ranges::any_of(plan::touched_paths(step.action),
                               [&](const auto& path) { return paths.contains(path); });
  };
  for (const auto& step : entry.plan.steps)
    for (auto& path : plan::touched_paths(step.action))
      paths.insert(std::move(path));
  std::string found;
  bool is_older = false;
  if (const auto journal = journal_of(context))
    std::ignore = journal->for_each([&](const JournalEntry& one) {
      const bool can = !one.is_undo() && one.state != JournalState::undone && one.state != JournalState::unreadable &&
                       !one.has_deleted() && std::ranges::any_of(one.steps, &plan::JournalStep::took_effect);
      if (is_older && can && found.empty() && std::ranges::none_of(one.plan.steps, touches))
        found = one.id;
      is_older = is_older || one.id == entry.id;
    });
  return found;
}

/// Refuses a plan that would leave a link to nothing, for example to a generation that `conda gc` has deleted since.
Result<void> check_targets(Context& context, const JournalEntry& entry, const plan::Plan& plan) {
  const auto gone = find_gone_target(context.system, plan);
  if (gone.empty())
    return {};
  const auto other = find_independent(context, entry);
  return fail(ErrorCode::conflict,
              fmt::format("`{}` ({}) cannot be taken back: {} is gone", entry.command, entry.id, gone),
              other.empty() ? fmt::format("`{}` shows all changes", undo_command(context, "--list"))
                            : fmt::format("`{}` takes back the newest one before it that does not depend on it",
                                          undo_command(context, other)));
}

/// Adds notes about those who link to a shared environment whose path the plan removes, or work with it.
void note_users(Context& context, plan::Plan& plan) {
  const auto config = context.config_if_any();
  if (!config || *config == nullptr || !(*config)->conda)
    return;
  std::set<std::string> back; // users who get their own directory back
  for (const auto& step : plan.steps)
    if (const auto* exchange = std::get_if<plan::ExchangeForLink>(&step.action); exchange && exchange->actor)
      back.insert(exchange->actor->user.name);
  std::vector<std::string> notes;
  for (const auto& step : plan.steps) {
    const auto* link = std::get_if<plan::Link>(&step.action);
    const auto name = link != nullptr ? base_name(link->path) : "";
    if (link == nullptr || link->after || !conda::linked_generation(name, link->before.value_or("")) ||
        parent_path(link->path) != (*config)->conda->store)
      continue;
    const auto found = read_inventory(context, name);
    for (const auto& row : found ? found->environments : std::vector<conda::ListedEnvironment>{}) {
      auto users = row.linked_by;
      std::erase_if(users, [&](const std::string& user) { return back.contains(user); });
      if (!users.empty())
        notes.push_back(fmt::format("the links of {} to {} lead nowhere then", join(users, ", "), link->path));
      std::vector<std::string> jobs;
      for (const auto& job : row.jobs)
        if (job.runs != false)
          jobs.push_back(fmt::format("process {} on {}", job.pid, job.host));
      if (!jobs.empty())
        notes.push_back(fmt::format("{} is used by {}: what runs keeps its generation, and finds {} no more", name,
                                    conda::first_of(jobs), link->path));
    }
    if (context.system.identity().uid != 0)
      notes.push_back(fmt::format("only root sees who else links to {}: `sudo sharefs conda list {}`", link->path,
                                  shell_quote(name)));
  }
  plan.notes.insert(plan.notes.end(), notes.begin(), notes.end());
}

} // namespace

Result<void> inspect_undo(Context& context, const JournalEntry& entry, plan::Plan& plan) {
  TRY(drop_undone_files(context, entry, plan));
  note_conflicts(context, plan);
  note_users(context, plan);
  return check_targets(context, entry, plan);
}

} // namespace sharefs::cli
