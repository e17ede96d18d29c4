// sharefs undo: takes a change back by its journal entry.
#include "cli/execute.hpp"
#include "cli/exit_code.hpp"
#include "plan/journal.hpp"
#include "ui/table.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::cli {

namespace {

using Json = nlohmann::ordered_json;

std::size_t steps_done(const plan::JournalEntry& entry) {
  return static_cast<std::size_t>(std::ranges::count_if(entry.steps, [](const plan::JournalStep& step) {
    return step.ended && (step.outcome == plan::Outcome::done || step.outcome == plan::Outcome::unchanged);
  }));
}

int list_entries(Context& context, const std::vector<plan::JournalEntry>& entries) {
  ui::Table table({{"ID"}, {"WHEN"}, {"USER"}, {"STATE"}, {"STEPS", true}, {"COMMAND", false, true}});
  auto rows = Json::array();
  for (const auto& entry : entries) {
    const auto done = steps_done(entry);
    table.add({{entry.id},
               {entry.started},
               {entry.user},
               {plan::to_string(entry.state)},
               {fmt::format("{}/{}", done, entry.plan.steps.size())},
               {entry.command}});
    rows.push_back({{"id", entry.id},
                    {"started", entry.started},
                    {"user", entry.user},
                    {"state", plan::to_string(entry.state)},
                    {"command", entry.command},
                    {"steps", entry.plan.steps.size()},
                    {"steps_done", done}});
  }
  context.envelope.fields["entries"] = std::move(rows);
  if (!context.flags.json && entries.empty())
    context.console.message("no change has been made yet");
  else if (!context.flags.json)
    context.console.out() << table.render(context.console.options());
  return k_exit_ok;
}

Result<int> run(Context& context, const Arguments& arguments) {
  const auto mounts = context.system.mounts();
  if (!mounts)
    return fail(mounts.error());
  const plan::Journal journal(context.system.files(), plan::state_directory(context.system.identity(), *mounts));
  const auto entries = journal.list();
  if (!entries)
    return fail(entries.error());
  if (arguments.flag("list"))
    return list_entries(context, *entries);

  std::optional<plan::JournalEntry> entry;
  if (!arguments.positional.empty()) {
    auto loaded = journal.load(arguments.positional.front());
    if (!loaded)
      return fail(loaded.error());
    entry = std::move(*loaded);
  } else {
    auto latest = journal.latest();
    if (!latest)
      return fail(latest.error());
    entry = std::move(*latest);
  }
  if (!entry) {
    context.console.message("there is nothing to undo");
    return k_exit_ok;
  }
  if (entry->state == plan::JournalState::running)
    return fail(ErrorCode::busy, fmt::format("`{}` ({}) is still at work", entry->command, entry->id),
                "wait for its end, then undo it");
  if (entry->state == plan::JournalState::undone) {
    context.console.message(fmt::format("{} is undone already", entry->id));
    return k_exit_ok;
  }
  context.envelope.fields["undoes"] = entry->id;
  context.console.message(fmt::format("taking back `{}` of {}", entry->command, entry->started));
  const auto executed = execute(context, plan::undo_plan(*entry, *entries), "there is nothing left to take back");
  if (!executed)
    return fail(executed.error());
  return executed->exit_code;
}

} // namespace

extern const CommandSpec k_undo_command;
const CommandSpec k_undo_command{
    .name = "undo",
    .summary = "Take a change back",
    .description =
        "Without ID the newest change that is not undone yet; also one that was cut off by a kill or a power loss. "
        "What is no longer as that change left it is a conflict, and stays.",
    .example = "sharefs undo --list            # what was changed, newest first\n"
               "sharefs undo --dry-run         # what taking the newest back would do\n"
               "sharefs undo 20260131-120000-4711",
    .effect = Effect::changes,
    .positional = {.name = "ID", .help = "a change as --list names it", .max = 1},
    .options = {{.names = "--list", .help = "list the changes instead"}},
    .run = run,
};

} // namespace sharefs::cli
