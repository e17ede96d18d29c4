#include "plan/apply.hpp"

#include "base/parallel.hpp"
#include "base/text.hpp"
#include "plan/perform.hpp"
#include "tree/fault_injection.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <fmt/format.h>
#include <map>
#include <mutex>

namespace sharefs::plan {

namespace {

using Clock = std::chrono::steady_clock;
using StepIndices = std::vector<std::size_t>;

/// Kills this process at a step that SHAREFS_TEST_KILL_AT names. N: just before the action of step N (counted from 0,
/// in the order of the plan), when its intent is in the journal. N+: right after that action, before its result is in
/// the journal.
void kill_if_chosen([[maybe_unused]] std::size_t step, [[maybe_unused]] bool after) {
#ifdef SHAREFS_FAULT_INJECTION
  const auto chosen = tree::chosen_step("SHAREFS_TEST_KILL_AT");
  if (chosen && chosen->number == step && chosen->plus == after)
    ::kill(::getpid(), SIGKILL);
#endif
}

/// True if the action has its own deadline, which counts time without progress. It may take longer than its group.
bool has_own_deadline(const Action& action) {
  return std::holds_alternative<ChangeFiles>(action) || std::holds_alternative<RemoveTree>(action) ||
         std::holds_alternative<SetTreeAccess>(action);
}

/// True for a reload by root. A harmless tool of a user may work on what the failed step should have made.
bool is_reload(const Action& action) {
  return is_harmless(action) && !std::get<RunTool>(action).actor;
}

/// The state of one apply(), which its threads share. Each step's result is written by one thread only.
class Run {
 public:
  Run(const Plan& plan, sys::System& system, const Journal& journal, const ApplyOptions& options)
      : m_plan(plan), m_system(system), m_journal(journal), m_options(options) {
    for (std::size_t i = 0; i < plan.steps.size(); ++i)
      m_report.results.push_back({i, Outcome::skipped, std::nullopt, std::chrono::milliseconds(0)});
  }

  Report run_all() {
    // Nested targets must share a group, even if the room that made the plan has put them into different groups.
    const auto merged = merge_nested_groups(m_plan);
    std::vector<StepIndices> groups;
    std::map<std::string, std::size_t> known;
    StepIndices unnamed;
    for (std::size_t i = 0; i < merged.steps.size(); ++i) {
      const auto& name = merged.steps[i].group;
      if (name.empty()) {
        unnamed.push_back(i);
        continue;
      }
      if (known.emplace(name, groups.size()).second)
        groups.emplace_back();
      groups[known[name]].push_back(i);
    }
    if (!m_plan.unnamed_last)
      run_group(unnamed);
    if (call_before_groups(unnamed))
      in_parallel(groups.size(), m_options.parallel, [&](std::size_t number) { run_group(groups[number]); });
    if (m_plan.unnamed_last && all_good(groups))
      run_group(unnamed);
    // Ctrl-C also ends the programs of this process group, so a step that failed may have been ended by it.
    m_report.interrupted = m_report.interrupted ||
                           (interrupted() && m_report.count(Outcome::skipped) + m_report.count(Outcome::failed) > 0);
    close_journal();
    return std::move(m_report);
  }

 private:
  /// Calls ApplyOptions::before_groups if the unnamed group has succeeded. False: the other groups must not run.
  [[nodiscard]] bool call_before_groups(const StepIndices& unnamed) {
    if (!m_options.before_groups)
      return true;
    if (!all_good({unnamed}) || interrupted())
      return false;
    const auto begun = m_options.before_groups();
    if (!begun && begun.error().code == ErrorCode::interrupted)
      m_report.interrupted = true;
    else if (!begun && !m_report.ok()) // if all steps are done already, there is nothing to forbid
      m_report.error = begun.error();
    return begun.has_value();
  }

  [[nodiscard]] bool all_good(const std::vector<StepIndices>& groups) const {
    return std::ranges::all_of(groups, [this](const StepIndices& steps) {
      return std::ranges::all_of(steps, [this](std::size_t index) { return is_good(m_report.results[index].outcome); });
    });
  }

  /// Runs the steps of a group in order. After the deadline, Ctrl-C or a journal that cannot be written, the rest stays
  /// `skipped`. After the first failure only reloads are run, and only if a step before was done: otherwise what was
  /// changed would not be in force, as an export that is in no file any more.
  void run_group(const StepIndices& steps) {
    auto end = Clock::now() + m_options.group_deadline;
    bool changed = false, failed = false;
    for (const auto index : steps) {
      if (interrupted() || m_stopped)
        return;
      if (failed && !(changed && is_reload(m_plan.steps[index].action)))
        continue;
      auto& result = m_report.results[index];
      if (Clock::now() >= end) {
        result.error = Error{ErrorCode::timeout,
                             "not begun: the steps before it took longer than " +
                                 format_duration(m_options.group_deadline / std::chrono::microseconds(1)),
                             "run the command again, it goes on from here", ""};
        return;
      }
      run_step(index);
      if (has_own_deadline(m_plan.steps[index].action))
        end += result.took;
      changed = changed || result.outcome == Outcome::done;
      failed = failed || result.outcome == Outcome::failed;
    }
  }

  void run_step(std::size_t index) {
    report_begin(index);
    auto& result = m_report.results[index];
    const auto begin = Clock::now();
    try {
      run_action(index, result);
    } catch (const std::exception& exception) { // in a thread an exception would end the process (std::bad_alloc)
      result.outcome = Outcome::failed;
      result.error = Error{ErrorCode::failed, exception.what(), "", ""};
    }
    result.took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
  }

  void run_action(std::size_t index, StepResult& result) {
    const auto set_outcome = [&result](const Result<Outcome>& outcome) {
      result.outcome = outcome ? *outcome : Outcome::failed;
      if (!outcome)
        result.error = outcome.error();
    };
    const auto checked = check_action(m_plan.steps[index].action, m_system);
    if (!checked || checked->already) {
      kill_if_chosen(index, false);
      kill_if_chosen(index, true);
      set_outcome(checked ? Result<Outcome>(Outcome::unchanged) : fail(checked.error()));
      const std::lock_guard lock(m_journal_mutex);
      m_not_journaled.push_back(result);
      return;
    }
    if (!journal_intent(index, checked->intent))
      return;
    kill_if_chosen(index, false);
    set_outcome(perform(checked->intent, m_system, [this](const std::string& text, bool lasting) {
      const std::lock_guard lock(m_progress_mutex);
      if (m_options.note)
        m_options.note(text, lasting);
    }));
    kill_if_chosen(index, true);
    // If the result cannot be written any more, the step counts as begun, and undo finds out how far it came.
    const auto noted = m_journal.end_step(m_report.journal_id, result);
    const std::lock_guard lock(m_journal_mutex);
    report_unnoted(noted);
  }

  /// Writes the intent of a step to the journal. The first intent makes the journal entry, so that a run that changes
  /// nothing leaves no entry. False: the intent cannot be written, which ends the run; the error belongs to no step.
  [[nodiscard]] bool journal_intent(std::size_t index, const Action& action) {
    const std::lock_guard lock(m_journal_mutex);
    const Intent intent{index, action, m_not_journaled};
    Result<void> written;
    if (m_report.journal_id.empty()) {
      auto id = m_journal.begin(m_plan, m_options.command, m_options.identity, m_system.now(), intent);
      if (id)
        m_report.journal_id = std::move(*id);
      else
        written = fail(id.error());
    } else {
      written = m_journal.begin_step(m_report.journal_id, intent);
    }
    if (written)
      m_not_journaled.clear();
    else if (!m_stopped.exchange(true))
      m_report.error = written.error();
    return written.has_value();
  }

  void report_begin(std::size_t index) {
    const std::lock_guard lock(m_progress_mutex);
    if (m_options.begins)
      m_options.begins(m_plan.steps[index]);
  }

  /// The work is done, and the journal only shows less of it; but who looks there later must know that.
  void report_unnoted(const Result<void>& noted) {
    if (noted || m_report.error)
      return;
    m_report.error = noted.error();
    m_report.error->message = "the journal does not say how the change ended: " + m_report.error->message;
    m_report.error->hint = m_report.journal_id.empty()
                               ? "run the command again"
                               : fmt::format("`sharefs undo {}` can still take it back", m_report.journal_id);
  }

  void close_journal() {
    if (!m_report.journal_id.empty()) {
      report_unnoted(m_journal.end(m_report.journal_id, m_report));
      [[maybe_unused]] const auto pruned = m_journal.prune(); // the next run prunes, too
    }
    if (!m_plan.undoes.empty() && m_report.ok())
      report_unnoted(m_journal.mark_undone(m_plan.undoes, m_report.journal_id));
  }

  const Plan& m_plan;
  sys::System& m_system;
  const Journal& m_journal;
  const ApplyOptions& m_options;
  Report m_report;
  std::vector<StepResult> m_not_journaled; ///< results of steps that found nothing to do, or whose check failed
  std::mutex m_progress_mutex, m_journal_mutex;
  std::atomic<bool> m_stopped = false; ///< the journal cannot be written: no further step is begun
};

} // namespace

Report apply(const Plan& plan, sys::System& system, const Journal& journal, const ApplyOptions& options) {
  return Run(plan, system, journal, options).run_all();
}

} // namespace sharefs::plan
