// sharefs undo: undoes a change by its journal entry.
#include "base/text.hpp"
#include "base/try.hpp"
#include "cli/commands/undo/inspect.hpp"
#include "cli/execute.hpp"
#include "cli/on_nodes.hpp"
#include "mounts/boot.hpp"
#include "ui/table.hpp"

#include <algorithm>
#include <fmt/format.h>
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
  if (latest && *latest && (*latest)->state == JournalState::unreadable)
    return fail(ErrorCode::failed,
                fmt::format("change {} cannot be read, so nothing older is taken back: {}", to_utf8((*latest)->id),
                            (*latest)->damage),
                fmt::format("`{}` shows the older ones, `{}` takes one back", undo_command(context, "--list"),
                            undo_command(context, "ID")));
  return latest;
}

Result<Executed> undo_entry(Context& context, const JournalEntry& entry) {
  context.envelope.fields["undoes"] = entry.id;
  bool is_said = false;
  const auto inspect = [&](plan::Plan& plan) {
    if (!std::exchange(is_said, true))
      context.console.message(fmt::format("taking back `{}` of {} ({})", entry.command, entry.started, entry.id));
    mounts::rebase_boot_undo(mounts::read_boot_facts(context.system), plan);
    return inspect_undo(context, entry, plan);
  };
  return take_back(context, entry.id, inspect);
}

/// Returns the entries with the IDs, or without IDs the newest; empty if there is nothing to undo.
Result<std::vector<JournalEntry>> find_entries(Context& context, const plan::Journal& journal,
                                               const std::vector<std::string>& ids) {
  std::vector<JournalEntry> entries;
  for (const auto& id : ids) {
    auto entry = journal.load(id);
    if (!entry && entry.error().hint.empty())
      entry.error().hint = fmt::format("`{}` shows all", undo_command(context, "--list"));
    TRY(entry);
    entries.push_back(std::move(*entry));
  }
  if (!entries.empty())
    return entries;
  TRY_ASSIGN(auto latest, find_latest(context, journal));
  if (latest)
    entries.push_back(std::move(*latest));
  return entries;
}

Result<int> run_undo(Context& context, const Arguments& arguments) {
  TRY_ASSIGN(const auto journal, journal_of(context));
  if (arguments.flag("list"))
    return arguments.positional.empty() ? list_entries(context, journal)
                                        : fail(ErrorCode::usage, "`--list` takes no ID", "leave one of them out");

  TRY_ASSIGN(auto entries, find_entries(context, journal, arguments.positional));
  if (!context.flags.changes_nothing() &&
      std::ranges::find(entries, plan::JournalState::running, &JournalEntry::state) != entries.end()) {
    TRY_ASSIGN(const auto state, state_directory(context));
    TRY(take_lock(context, state, context.flags.wait)); // waits for the run that is at work
    TRY_ASSIGN(entries, find_entries(context, journal, arguments.positional));
  }
  if (entries.empty()) {
    context.console.message("there is nothing to undo");
    return k_exit_ok;
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
        "A directory that is not empty stays, with its access. "
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
