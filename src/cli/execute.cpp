#include "cli/execute.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "plan/apply.hpp"
#include "plan/journal.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::cli {

namespace {

/// Reads the newest entry, `id`; `not_found` where the journal is empty.
Result<plan::JournalEntry> load_newest(const plan::Journal& journal, const Result<std::string>& id) {
  return id && !id->empty() ? journal.load(*id) : fail(ErrorCode::not_found, "");
}

/// Reports a run that was killed: its journal entry, the newest, is unfinished. An entry that is being undone now is
/// not reported.
std::optional<Diagnosis> find_unfinished(const Context& context, const Result<plan::JournalEntry>& entry,
                                         const std::string& undoes) {
  if (!entry || entry->state != plan::JournalState::unfinished || entry->id == undoes)
    return std::nullopt;
  const auto ended = std::ranges::count_if(entry->steps, &plan::JournalStep::ended);
  return Diagnosis{Severity::warning,
                   "SF604",
                   "",
                   fmt::format("an earlier run (`{}`, {}) was cut off after {} of {}", entry->command, entry->started,
                               ended, count_of(entry->plan.steps.size(), "step")),
                   entry->has_deleted() ? std::string("running it again completes it")
                                        : fmt::format("running it again completes it, `{}` takes it back",
                                                      undo_command(context, entry->id)),
                   ""};
}

/// Calls before_groups for work that takes long; others can take the host lock meanwhile.
Result<void> work_without_lock(Context& context, const Proposal& proposal, std::optional<plan::HostLock>& lock,
                               const std::string& state) {
  // Long work must not be lost because the lock is busy for a while.
  constexpr std::chrono::milliseconds k_least_wait{120'000};
  lock.reset();
  TRY(proposal.before_groups());
  TRY_ASSIGN(auto taken, take_lock(context, state, std::max(context.flags.wait, k_least_wait)));
  lock.emplace(std::move(taken));
  return {};
}

Executed apply(Context& context, const Proposal& proposal, const plan::Journal& journal, const sys::Identity& identity,
               std::optional<plan::HostLock>& lock, const std::string& state) {
  const auto& plan = proposal.plan;
  ui::Progress progress(context.console, "working", plan.steps.size());
  plan::ApplyOptions options;
  options.command = shell_join(context.argv);
  options.identity = identity;
  options.before_groups = proposal.before_groups;
  if (proposal.takes_long)
    options.before_groups = [&] { return work_without_lock(context, proposal, lock, state); };
  options.begins = [&](const plan::Step& step) { progress.advance(plan::describe(step.action)); };
  std::vector<std::string> said;
  options.note = [&](const std::string& text, bool lasting) {
    if (lasting)
      said.push_back(text);
    else
      progress.update(text);
  };
  auto report = plan::apply(plan, context.system, journal, options);
  context.envelope.report = report;
  for (const auto& text : said)
    context.console.message(text);
  context.console.show(plan, report, undo_command(context, report.journal_id));
  const auto good = report.count_good();
  const int code = report.interrupted ? k_exit_interrupted : exit_code_for(good, report.results.size() - good);
  return Executed{code, std::move(report)};
}

/// Shows the plan. Returns a value if the command ends here.
std::optional<Executed> present(Context& context, const Proposal& proposal) {
  context.envelope.plan = proposal.plan;
  context.console.show(proposal.plan, context.flags.changes_nothing());
  if (proposal.plan.empty()) {
    if (!proposal.nothing.empty())
      context.console.message(proposal.nothing);
    return Executed{};
  }
  if (context.flags.check)
    return Executed{k_exit_pending, std::nullopt};
  if (context.flags.dry_run) {
    context.console.message("nothing was changed (--dry-run)");
    return Executed{};
  }
  return std::nullopt;
}

} // namespace

Result<bool> ask_consent(Context& context) {
  if (context.flags.yes)
    return true;
  if (!context.console.options().in_terminal || context.flags.json)
    return fail(ErrorCode::usage, "there is no terminal to ask for consent",
                "add --yes to go ahead, or --dry-run to see what would be done");
  const bool agreed = context.console.confirm("Proceed?");
  if (sys::interrupted())
    return fail(ErrorCode::interrupted, "interrupted: nothing was changed");
  if (!agreed)
    context.console.message("nothing was changed");
  return agreed;
}

Result<plan::HostLock> take_lock(Context& context, const std::string& directory, std::chrono::milliseconds wait,
                                 const std::string& name) {
  const auto user = context.system.identity().user; // may ask name services, so it is called before the lock is held
  return plan::HostLock::acquire(
      context.system.files(), directory, {shell_join(context.argv), user}, wait,
      [&](const std::string& holder) { context.console.message("waiting: " + holder); }, name);
}

Result<std::string> state_directory(Context& context) {
  return context.system.mounts().map([&](const sys::MountTable& mounts) {
    return plan::state_directory(context.system.files(), context.system.identity(), mounts);
  });
}

Result<plan::Journal> journal_of(Context& context) {
  return state_directory(context).map(
      [&](const std::string& directory) { return plan::Journal(context.system.files(), directory); });
}

Result<void> check_writable(sys::System& system, const std::string& directory) {
  const auto there = system.entry({.path = directory, .follow = true, .space = true, .access = true});
  if (there.exists() && !there.writable)
    return fail(ErrorCode::permission, "it is read-only",
                fmt::format("make it writable: `findmnt -T {}` shows its file system", shell_quote(directory)));
  if (there.space && ((there.space->size_bytes > 0 && there.space->free_bytes == 0) ||
                      (there.space->files > 0 && there.space->free_files == 0)))
    return fail(ErrorCode::failed, "its disk is full",
                fmt::format("make room: `df -h {0}`, `df -i {0}`", shell_quote(directory)));
  return {};
}

Result<Diagnoses> diagnose_journal(Context& context) {
  TRY_ASSIGN(const auto state, state_directory(context));
  const plan::Journal journal(context.system.files(), state);
  const auto says = [&](std::string what, std::string hint) {
    return Diagnoses{{Severity::error, "SF607", state, std::move(what), std::move(hint), ""}};
  };
  const auto newest = journal.newest_id();
  if (!newest)
    return Diagnoses{{Severity::error, "SF607", "journal", newest.error().message, newest.error().hint, ""}};
  if (const auto writable = check_writable(context.system, state); !writable)
    return says(
        fmt::format("nothing can be changed, since the journal cannot be written there: {}", writable.error().message),
        writable.error().hint);
  const auto entry = load_newest(journal, newest);
  if (entry && entry->state == plan::JournalState::unreadable)
    return says(fmt::format("the newest change ({}) cannot be taken back: {}", *newest, entry->damage),
                fmt::format("look at it, then set it aside, so that `sharefs undo` works for older ones: "
                            "`mv {0} {0}.damaged`",
                            shell_quote(join_path(state, "journal/" + *newest))));
  auto left = find_unfinished(context, entry, "");
  if (!left)
    return {};
  left->subject = state;
  return Diagnoses{*std::move(left)};
}

Result<Executed> execute(Context& context, const std::function<Result<Proposal>()>& propose) {
  const auto identity = context.system.identity();
  TRY_ASSIGN(const auto state, state_directory(context));
  const plan::Journal journal(context.system.files(), state);

  auto newest = journal.newest_id();
  // A plan that is made while another run is at work knows a state between two, and that run's entry is not a new one.
  const auto before = load_newest(journal, newest);
  bool at_rest = !before || before->state != plan::JournalState::running;
  TRY_ASSIGN(auto proposal, propose());
  for (bool first = true;; first = false) {
    if (auto ended = present(context, proposal))
      return *ended;
    if (const auto left = first ? find_unfinished(context, before, proposal.plan.undoes) : std::nullopt)
      context.console.warning(left->message, left->hint); // reported before the next change is made
    TRY_ASSIGN(const auto agreed, ask_consent(context));
    if (!agreed) // the same exit code as dnf and apt
      return Executed{k_exit_failed, std::nullopt};
    plan::install_interrupt_handlers(); // set before the lock, so that Ctrl-C ends the wait for it
    TRY_ASSIGN(auto taken, take_lock(context, state, context.flags.wait));
    std::optional<plan::HostLock> lock(std::move(taken));
    TRY_ASSIGN(auto now, journal.newest_id());
    const bool same = newest && now == *newest && at_rest;
    if (same && !proposal.short_lived)
      return apply(context, proposal, journal, identity, lock, state);
    TRY_ASSIGN(auto again, propose());
    if (again.plan == proposal.plan)
      return apply(context, proposal, journal, identity, lock, state);
    context.console.message(same ? "this host has changed meanwhile; what is to be done now:"
                                 : "another sharefs has changed this host meanwhile; what is to be done now:");
    newest = std::move(now);
    at_rest = true; // the lock was held meanwhile
    proposal = std::move(again);
    // The lock is given back while the user answers.
  }
}

namespace {

/// Makes the plan that undoes the entry, from the present journal.
Result<Proposal> propose_undo(Context& context, const plan::Journal& journal, const std::string& id,
                              const std::function<Result<void>(plan::Plan&)>& inspect) {
  TRY_ASSIGN(const auto entry, journal.load(id));
  TRY_ASSIGN(const auto attempts, journal.find_undos(id));
  const auto& by = entry.undone_by;
  if (entry.state == plan::JournalState::undone)
    return Proposal{{},
                    id + " is undone already" +
                        (by.empty() ? "" : fmt::format("; `{}` brings it back", undo_command(context, by)))};
  if (entry.state == plan::JournalState::running)
    return fail(ErrorCode::busy, fmt::format("`{}` ({}) is still at work", entry.command, id),
                "wait for its end, then undo it");
  if (entry.state == plan::JournalState::unreadable)
    return fail(ErrorCode::failed, fmt::format("change {} cannot be read: {}", id, entry.damage),
                fmt::format("`{}` shows the others", undo_command(context, "--list")));
  auto plan = plan::plan_undo(entry, attempts);
  if (plan.empty() && !plan.notes.empty())
    return fail(ErrorCode::unsupported, fmt::format("nothing of {} (`{}`) can be taken back", id, entry.command),
                fmt::format("`{}` shows older changes, `{}` takes one back", undo_command(context, "--list"),
                            undo_command(context, "ID")),
                join(plan.notes, "\n"));
  TRY(inspect && !plan.empty() ? inspect(plan) : Result<void>());
  // An undo that was killed after its last step has done everything; unmarked, the entry would stay the newest for
  // ever.
  if (plan.empty() && !context.flags.changes_nothing())
    TRY(journal.mark_undone(id, ""));
  return Proposal{std::move(plan), "there is nothing left to take back of " + id};
}

} // namespace

Result<Executed> take_back(Context& context, const std::string& id,
                           const std::function<Result<void>(plan::Plan&)>& inspect) {
  TRY_ASSIGN(const auto journal, journal_of(context));
  return execute(context, [&] { return propose_undo(context, journal, id, inspect); });
}

Result<void> roll_back(Context& context, const std::string& journal_id, std::string_view why) {
  auto flags = context.flags;
  flags.yes = true;
  Context undo(context.host, context.system, context.console, flags, context.argv);
  context.console.message("the result is not as it should be: undoing the change");
  TRY_ASSIGN(const auto undone, take_back(undo, journal_id));
  if (undone.exit_code != k_exit_ok)
    return fail(ErrorCode::failed, fmt::format("{}, and not everything could be taken back", why),
                fmt::format("run `{}`", undo_command(context, journal_id)));
  context.envelope.fields["rolled_back"] = true;
  return {};
}

Result<Executed> execute_more(Context& context, const std::function<Result<Executed>()>& work) {
  auto plan = std::exchange(context.envelope.plan, std::nullopt).value_or(plan::Plan{});
  auto report = std::exchange(context.envelope.report, std::nullopt).value_or(plan::Report{});
  auto executed = work();
  const auto further = context.envelope.plan.value_or(plan::Plan{});
  const auto count = plan.steps.size();
  plan.add(further);
  if (context.envelope.report) {
    for (auto result : context.envelope.report->results) {
      result.step += count;
      report.results.push_back(std::move(result));
    }
    auto& id = context.envelope.report->journal_id;
    if (!id.empty() && !report.journal_id.empty())
      report.earlier_ids.push_back(report.journal_id);
    if (!id.empty())
      report.journal_id = std::move(id);
    report.interrupted = context.envelope.report->interrupted;
    report.error = context.envelope.report->error;
  }
  context.envelope.plan = std::move(plan);
  if (context.envelope.report || !report.results.empty())
    context.envelope.report = std::move(report);
  return executed;
}

Result<Executed> execute_further(Context& context, const std::function<Result<Proposal>()>& propose) {
  return execute_more(context, [&] { return execute(context, propose); });
}

Result<Executed> execute(Context& context, const plan::Plan& plan, std::string_view nothing) {
  return execute(context, [&]() -> Result<Proposal> { return Proposal{plan, std::string(nothing)}; });
}

} // namespace sharefs::cli
