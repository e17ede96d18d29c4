#include "cli/execute.hpp"

#include "base/text.hpp"
#include "cli/exit_code.hpp"
#include "plan/apply.hpp"
#include "plan/host_lock.hpp"
#include "plan/journal.hpp"

#include <fmt/format.h>

namespace sharefs::cli {

namespace {

int exit_code_of_report(const plan::Report& report) {
  if (report.interrupted)
    return k_exit_interrupted;
  if (report.ok())
    return k_exit_ok;
  const auto good = report.count(plan::Outcome::done) + report.count(plan::Outcome::unchanged);
  return good == 0 ? k_exit_failed : k_exit_partly;
}

/// A run that was killed left an unfinished journal entry: the person should know before the next change.
void tell_of_unfinished(Context& context, const plan::Journal& journal, const plan::Plan& plan) {
  const auto entries = journal.list();
  if (!entries || entries->empty() || entries->front().state != plan::JournalState::unfinished)
    return;
  const auto& entry = entries->front();
  if (entry.plan.empty() || entry.id == plan.undoes) // damaged, or just about to be taken back
    return;
  std::size_t ended = 0;
  for (const auto& step : entry.steps)
    ended += step.ended ? 1U : 0U;
  context.console.warning(fmt::format("an earlier run (`{}`, {}) was cut off after {} of {}", entry.command,
                                      entry.started, ended, count_of(entry.plan.steps.size(), "step")),
                          fmt::format("running it again completes it, `sharefs undo {}` takes it back", entry.id));
}

Result<void> ask(Context& context) {
  if (context.flags.yes)
    return {};
  if (!context.console.options().in_terminal || context.flags.json)
    return fail(ErrorCode::usage, "there is no terminal to ask for consent",
                "add --yes to go ahead, or --dry-run to see what would be done");
  if (!context.console.confirm("Proceed?"))
    return fail(ErrorCode::interrupted, "nothing was changed");
  return {};
}

} // namespace

Result<Executed> execute(Context& context, const plan::Plan& plan, std::string_view nothing) {
  context.envelope.plan = plan;
  if (!context.flags.json)
    context.console.show(plan);
  if (plan.empty()) {
    context.console.message(nothing);
    return Executed{};
  }
  if (context.flags.check)
    return Executed{k_exit_pending, std::nullopt};
  if (context.flags.dry_run) {
    context.console.message("nothing was changed (--dry-run)");
    return Executed{};
  }
  const auto identity = context.system.identity();
  const auto mounts = context.system.mounts();
  if (!mounts)
    return fail(mounts.error());
  const auto state = plan::state_directory(identity, *mounts);
  const plan::Journal journal(context.system.files(), state);
  tell_of_unfinished(context, journal, plan);
  if (auto agreed = ask(context); !agreed)
    return fail(agreed.error());

  plan::install_interrupt_handlers(); // before the lock, whose wait Ctrl-C ends
  const auto command = shell_join(context.argv);
  auto lock =
      plan::HostLock::acquire(context.system.files(), state, command, context.flags.wait,
                              [&](const std::string& holder) { context.console.message("waiting: " + holder); });
  if (!lock)
    return fail(lock.error());

  ui::Console::Progress progress(context.console, "working", plan.steps.size());
  plan::ApplyOptions options;
  options.command = command;
  options.progress = [&](const plan::Step& step, const plan::StepResult* result) {
    if (result == nullptr)
      progress.advance(plan::describe(step.action));
  };
  auto report = plan::apply(plan, context.system, journal, options);
  context.envelope.report = report;
  if (!context.flags.json)
    context.console.show(plan, report);
  const int code = exit_code_of_report(report);
  return Executed{code, std::move(report)};
}

} // namespace sharefs::cli
