#include "plan/apply.hpp"

#include "base/text.hpp"
#include "plan/fault_injection.hpp"
#include "plan/perform.hpp"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <thread>

namespace sharefs::plan {

namespace {

using Clock = std::chrono::steady_clock;
using StepIndices = std::vector<std::size_t>;

/// One apply(): what its threads share. Each step's result is written by one thread only.
class Run {
 public:
  Run(const Plan& plan, sys::System& system, const Journal& journal, const ApplyOptions& options)
      : m_plan(plan), m_system(system), m_journal(journal), m_options(options),
        m_faults(FaultInjection::from_environment()) {
    for (std::size_t i = 0; i < plan.steps.size(); ++i)
      m_report.results.push_back({i, Outcome::skipped, std::nullopt, std::chrono::milliseconds(0)});
  }

  Report all();

 private:
  void group(const StepIndices& steps);
  void step(std::size_t index);
  void work(std::size_t index, StepResult& result);
  Result<void> journal_intent(std::size_t index, const Action& intent);
  void tell(std::size_t index, const StepResult* result);
  void close_journal();

  const Plan& m_plan;
  sys::System& m_system;
  const Journal& m_journal;
  const ApplyOptions& m_options;
  const FaultInjection m_faults;
  Report m_report;
  std::vector<StepResult> m_not_journaled; ///< of steps that needed no intent
  std::mutex m_progress_mutex, m_journal_mutex;
};

Report Run::all() {
  // Nested targets share a group, also where the plan's author did not think of it.
  const auto merged = merge_nested_groups(m_plan);
  std::vector<StepIndices> groups;
  std::map<std::string, std::size_t> known;
  StepIndices first;
  for (std::size_t i = 0; i < merged.steps.size(); ++i) {
    const auto& name = merged.steps[i].group;
    if (name.empty()) {
      first.push_back(i);
      continue;
    }
    if (known.emplace(name, groups.size()).second)
      groups.emplace_back();
    groups[known[name]].push_back(i);
  }
  group(first);
  const auto workers = std::min(groups.size(), std::max<std::size_t>(1, m_options.parallel));
  std::atomic<std::size_t> next{0};
  const auto take_groups = [&] {
    for (auto i = next++; i < groups.size(); i = next++)
      group(groups[i]);
  };
  std::vector<std::jthread> threads;
  for (std::size_t i = 1; i < workers; ++i)
    threads.emplace_back(take_groups);
  take_groups(); // this thread is one of the workers
  threads.clear();
  m_report.interrupted = interrupted() && m_report.count(Outcome::skipped) > 0;
  close_journal();
  return std::move(m_report);
}

/// In order; the first failure, the deadline or Ctrl-C leaves the rest as `skipped`.
void Run::group(const StepIndices& steps) {
  const auto end = Clock::now() + m_options.group_deadline;
  for (const auto index : steps) {
    if (interrupted())
      return;
    auto& result = m_report.results[index];
    if (Clock::now() >= end) {
      result.error = Error{ErrorCode::timeout,
                           "not begun: the steps before it took longer than " +
                               format_duration(m_options.group_deadline / std::chrono::microseconds(1)),
                           "run the command again, it goes on from here", ""};
      return;
    }
    step(index);
    if (result.outcome == Outcome::failed)
      return;
  }
}

void Run::step(std::size_t index) {
  tell(index, nullptr);
  auto& result = m_report.results[index];
  const auto begin = Clock::now();
  work(index, result);
  result.took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
  tell(index, &result);
}

void Run::work(std::size_t index, StepResult& result) {
  const auto take = [&result](const Result<Outcome>& outcome) {
    result.outcome = outcome ? *outcome : Outcome::failed;
    if (!outcome)
      result.error = outcome.error();
  };
  const auto looked = look_at(m_plan.steps[index].action, m_system);
  if (!looked || looked->already) {
    m_faults.before_action(index);
    m_faults.after_action(index);
    take(looked ? Result<Outcome>(Outcome::unchanged) : fail(looked.error()));
    const std::lock_guard lock(m_journal_mutex);
    m_not_journaled.push_back(result);
    return;
  }
  if (auto written = journal_intent(index, looked->intent); !written)
    return take(fail(written.error()));
  m_faults.before_action(index);
  take(perform(looked->intent, m_system));
  m_faults.after_action(index);
  // If this cannot be written any more, the step counts as begun: undo finds out by itself how far it came.
  [[maybe_unused]] const auto noted = m_journal.step_ended(m_report.journal_id, result);
}

/// The entry is made when the first step is about to change something: a run that finds all as it should be leaves
/// none. With the intent go the steps that found nothing to do, because an undo that is cut off and run again must not
/// look at them twice: later steps may have changed what they saw.
Result<void> Run::journal_intent(std::size_t index, const Action& intent) {
  {
    const std::lock_guard lock(m_journal_mutex);
    if (m_report.journal_id.empty()) {
      auto id = m_journal.begin(m_plan, m_options.command, m_system.identity(), m_system.now());
      if (!id)
        return fail(id.error());
      m_report.journal_id = std::move(*id);
    }
    if (auto written = m_journal.steps_ended(m_report.journal_id, m_not_journaled); !written)
      return written;
    m_not_journaled.clear();
  }
  return m_journal.step_begins(m_report.journal_id, index, intent);
}

void Run::tell(std::size_t index, const StepResult* result) {
  if (!m_options.progress)
    return;
  const std::lock_guard lock(m_progress_mutex);
  m_options.progress(m_plan.steps[index], result);
}

void Run::close_journal() {
  // If any of this fails, the journal is less tidy; the work is done.
  [[maybe_unused]] Result<void> noted;
  if (!m_report.journal_id.empty()) {
    noted = m_journal.end(m_report.journal_id, m_report);
    noted = m_journal.prune();
  }
  if (!m_plan.undoes.empty() && m_report.ok())
    noted = m_journal.mark_undone(m_plan.undoes, m_report.journal_id);
}

} // namespace

Report apply(const Plan& plan, sys::System& system, const Journal& journal, const ApplyOptions& options) {
  return Run(plan, system, journal, options).all();
}

} // namespace sharefs::plan
