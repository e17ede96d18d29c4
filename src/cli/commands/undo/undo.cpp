// sharefs undo: undoes a change by its journal entry.
#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "cli/commands/conda/support.hpp"
#include "cli/execute.hpp"
#include "cli/on_nodes.hpp"
#include "conda/environment.hpp"
#include "mounts/boot.hpp"
#include "ui/table.hpp"

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

ui::Cell state_of(const JournalEntry& entry) {
  using enum JournalState;
  const bool doubtful = entry.state == failed || entry.state == unfinished || entry.state == unreadable;
  return {plan::to_string(entry.state), doubtful ? ui::Colour::yellow : ui::Colour::none};
}

Result<int> list_entries(Context& context, const plan::Journal& journal) {
  ui::Table table({{"ID"}, {"WHEN"}, {"USER"}, {"STATE"}, {"STEPS", true}, {"COMMAND", false, true}});
  auto rows = Json::array();
  std::string oldest, since;
  TRY(journal.for_each([&](const JournalEntry& entry) {
    oldest = entry.id;
    since = entry.started;
    const auto done = std::ranges::count_if(entry.steps, plan::is_good, &plan::JournalStep::outcome);
    table.add({{entry.id},
               {entry.started},
               {entry.user},
               state_of(entry),
               {fmt::format("{}/{}", done, entry.plan.steps.size())},
               {entry.command}});
    rows.push_back({{"id", to_utf8(entry.id)},
                    {"started", entry.started},
                    {"user", to_utf8(entry.user)},
                    {"state", plan::to_string(entry.state)},
                    {"command", to_utf8(entry.command)},
                    {"steps", entry.plan.steps.size()},
                    {"steps_done", done},
                    {"undoes", entry.plan.undoes},
                    {"undone_by", entry.undone_by},
                    {"damage", entry.damage}});
  }));
  context.show(table, "entries", std::move(rows), "sharefs has not changed anything here yet");
  if (!table.empty() && oldest != "1")
    context.console.message(
        fmt::format("undo reaches back to {} ({}): of older changes nothing is kept (the newest {}, "
                    "and {} of them)",
                    oldest, since, plan::Journal::k_most_entries, format_bytes(plan::Journal::k_most_bytes)));
  return k_exit_ok;
}

/// Returns the newest entry that can be undone, and reports newer ones that cannot; nullopt if there is none.
Result<std::optional<JournalEntry>> find_latest(Context& context, const plan::Journal& journal) {
  std::vector<JournalEntry> passed;
  auto latest = journal.find_latest(&passed);
  for (const auto& entry : passed)
    context.console.message(fmt::format("passed over: `{}` of {} ({}) has deleted what cannot be brought back",
                                        entry.command, entry.started, entry.id));
  return latest;
}

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

/// Returns a target that is gone, of a link that the plan puts where a directory is or that may only lead to what is
/// there; empty if there is none. Where the directory of the target is missing, too, its share may not be mounted.
std::string find_gone_target(sys::System& system, const plan::Plan& plan) {
  std::set<std::string> made, moved; // by this plan
  sys::EntryRequest request;
  for (const auto& [group, why, action, stays, bookkeeping, stays_deleted] : plan.steps) {
    const auto* link = std::get_if<plan::Link>(&action);
    const auto* rename = std::get_if<plan::Rename>(&action);
    const auto* exchange = std::get_if<plan::ExchangeForLink>(&action);
    if (rename != nullptr)
      moved.insert(rename->from);
    if (link != nullptr && link->after && (link->checked || moved.contains(link->path)))
      request.queries.push_back({.path = normalize_path(*link->after, parent_path(link->path)), .follow = true});
    if (exchange != nullptr && !exchange->reverse)
      request.queries.push_back({.path = exchange->target, .follow = true});
    for (auto& path : plan::touched_paths(action))
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
              other.empty() ? "`sharefs undo --list` shows all changes"
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

Result<Executed> undo_entry(Context& context, const JournalEntry& entry) {
  context.envelope.fields["undoes"] = entry.id;
  bool is_said = false;
  const auto inspect = [&](plan::Plan& plan) {
    if (!std::exchange(is_said, true))
      context.console.message(fmt::format("taking back `{}` of {} ({})", entry.command, entry.started, entry.id));
    mounts::rebase_boot_undo(mounts::read_boot_facts(context.system), plan);
    note_conflicts(context, plan);
    note_users(context, plan);
    return check_targets(context, entry, plan);
  };
  return take_back(context, entry.id, inspect);
}

Result<int> run_undo(Context& context, const Arguments& arguments) {
  TRY_ASSIGN(const auto journal, journal_of(context));
  if (arguments.flag("list"))
    return arguments.positional.empty() ? list_entries(context, journal)
                                        : fail(ErrorCode::usage, "`--list` takes no ID", "leave one of them out");

  std::vector<JournalEntry> entries;
  for (const auto& id : arguments.positional) {
    TRY_ASSIGN(auto entry, journal.load(id));
    entries.push_back(std::move(entry));
  }
  if (entries.empty()) {
    TRY_ASSIGN(auto latest, find_latest(context, journal));
    if (!latest) {
      context.console.message("there is nothing to undo");
      return k_exit_ok;
    }
    entries.push_back(std::move(*latest));
  }
  int code = k_exit_ok;
  for (const auto& entry : entries) {
    TRY_ASSIGN(const auto executed, execute_more(context, [&] { return undo_entry(context, entry); }));
    code = code == k_exit_ok ? executed.exit_code : code;
    if (code != k_exit_ok && code != k_exit_pending)
      break;
  }
  return code;
}

} // namespace

extern const CommandSpec k_undo_command{
    .name = "undo",
    .summary = "Take a change back",
    .description =
        "Without ID the newest change that is not undone yet; also one that was cut off by a kill or a power loss. "
        "What is no longer as that change left it is a conflict, and stays; what does not depend on it is taken back. "
        "In /etc/fstab and rc.local only what sharefs wrote there is taken back, whatever else was changed. "
        "A change that has deleted for good is passed over, and named. "
        "A newest change that cannot be read (damaged, or of a later version) stops it. An undo is a change too: "
        "`sharefs undo` with its ID brings back what it took.",
    .example = "sharefs undo --list            # what was changed, newest first\n"
               "sharefs undo --dry-run         # what taking the newest back would do\n"
               "sharefs undo 17",
    .changes = true,
    .positional = {.name = "ID", .help = "changes as --list names them, which are taken back in this order"},
    .options = {{.names = "--list", .help = "list the changes instead"}},
    .on_nodes = true,
    .before_nodes = find_run,
    .run = run_undo,
};

} // namespace sharefs::cli
