// sharefs undo: takes a change back by its journal entry.
#include "base/text.hpp"
#include "cli/execute.hpp"
#include "cli/exit_code.hpp"
#include "mounts/boot.hpp"
#include "ui/table.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>

namespace sharefs::cli {

namespace {

using Json = nlohmann::ordered_json;
using plan::JournalEntry;
using plan::JournalState;

std::size_t steps_done(const JournalEntry& entry) {
  return static_cast<std::size_t>(std::ranges::count_if(entry.steps, [](const plan::JournalStep& step) {
    return step.ended && (step.outcome == plan::Outcome::done || step.outcome == plan::Outcome::unchanged);
  }));
}

ui::Cell state_of(const JournalEntry& entry) {
  using enum JournalState;
  const bool doubtful = entry.state == failed || entry.state == unfinished || entry.state == unreadable;
  return {plan::to_string(entry.state), doubtful ? ui::Colour::yellow : ui::Colour::none};
}

Result<int> list_entries(Context& context, const plan::Journal& journal) {
  ui::Table table({{"ID"}, {"WHEN"}, {"USER"}, {"STATE"}, {"STEPS", true}, {"COMMAND", false, true}});
  auto rows = Json::array();
  std::string oldest, since;
  const auto listed = journal.each([&](const JournalEntry& entry) {
    oldest = entry.id;
    since = entry.started;
    const auto done = steps_done(entry);
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
  });
  if (!listed)
    return fail(listed.error());
  const bool none = rows.empty();
  context.envelope.fields["entries"] = std::move(rows);
  context.console.show(table);
  if (none)
    context.console.message("sharefs has not changed anything here yet");
  else if (oldest != "1")
    context.console.message(
        fmt::format("undo reaches back to {} ({}): of older changes nothing is kept (the newest {}, "
                    "and {} of them)",
                    oldest, since, plan::Journal::k_most_entries, format_bytes(plan::Journal::k_most_bytes)));
  return k_exit_ok;
}

/// The entry to take back; nullopt if there is nothing to take back.
Result<std::optional<JournalEntry>> choose(Context& context, const plan::Journal& journal, const Arguments& arguments) {
  if (arguments.positional.empty()) {
    std::vector<JournalEntry> passed;
    auto latest = journal.latest(&passed);
    for (const auto& entry : passed)
      context.console.message(fmt::format("passed over: `{}` of {} ({}) has deleted what cannot be brought back",
                                          entry.command, entry.started, entry.id));
    return latest;
  }
  return journal.load(arguments.positional.front()).map([](JournalEntry&& entry) {
    return std::optional(std::move(entry));
  });
}

/// May it be taken back now?
Result<void> check_state(const JournalEntry& entry) {
  if (entry.state == JournalState::running)
    return fail(ErrorCode::busy, fmt::format("`{}` ({}) is still at work", entry.command, entry.id),
                "wait for its end, then undo it");
  if (entry.state == JournalState::unreadable)
    return fail(ErrorCode::failed, fmt::format("change {} cannot be read: {}", entry.id, entry.damage),
                "`sharefs undo --list` shows the others");
  return {};
}

/// Nothing to do: because an earlier undo, cut off at its very end, did it all, or because there is no way back.
Result<int> nothing_left(Context& context, const plan::Journal& journal, const JournalEntry& entry,
                         const plan::Plan& undo) {
  if (!undo.notes.empty())
    return fail(ErrorCode::unsupported, fmt::format("nothing of {} (`{}`) can be taken back", entry.id, entry.command),
                "`sharefs undo --list` shows older changes, `sharefs undo ID` takes one back", join(undo.notes, "\n"));
  context.console.message(fmt::format("there is nothing left to take back of {}", entry.id));
  if (!context.flags.check && !context.flags.dry_run)
    if (auto marked = journal.mark_undone(entry.id, ""); !marked)
      return fail(marked.error());
  return k_exit_ok;
}

/// Files that are no longer as the change left them stay so; said here, since only applying finds it out.
void note_conflicts(Context& context, plan::Plan& plan) {
  std::map<std::string, std::pair<std::optional<std::string>, std::optional<std::string>>>
      files; // the first step of each
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

Result<int> run_undo(Context& context, const Arguments& arguments) {
  const auto journal = journal_of(context);
  if (!journal)
    return fail(journal.error());
  if (arguments.flag("list"))
    return list_entries(context, *journal);

  const auto chosen = choose(context, *journal, arguments);
  if (!chosen)
    return fail(chosen.error());
  if (!*chosen) {
    context.console.message("there is nothing to undo");
    return k_exit_ok;
  }
  const auto& entry = **chosen;
  if (entry.state == JournalState::undone) {
    context.console.message(
        fmt::format("{} is undone already", entry.id) +
        (entry.undone_by.empty() ? "" : fmt::format("; `{}` brings it back", undo_command(context, entry.undone_by))));
    return k_exit_ok;
  }
  if (auto checked = check_state(entry); !checked)
    return fail(checked.error());
  context.envelope.fields["undoes"] = entry.id;
  const auto attempts = journal->undos_of(entry.id);
  if (!attempts)
    return fail(attempts.error());
  const auto undo = plan::undo_plan(entry, *attempts);
  if (undo.empty())
    return nothing_left(context, *journal, entry, undo);
  context.console.message(fmt::format("taking back `{}` of {} ({})", entry.command, entry.started, entry.id));
  const auto look = [&](plan::Plan& plan) {
    mounts::undo_on_what_is_there(mounts::boot_facts(context.system), plan);
    note_conflicts(context, plan);
    return Result<void>();
  };
  return take_back(context, entry.id, look).map(&Executed::exit_code);
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
    .effect = Effect::changes,
    .positional = {.name = "ID", .help = "a change as --list names it", .max = 1},
    .options = {{.names = "--list", .help = "list the changes instead"}},
    .run = run_undo,
};

} // namespace sharefs::cli
