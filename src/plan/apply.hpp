#pragma once
#include "plan/journal.hpp"
#include "plan/plan.hpp"
#include "sys/process/interrupt.hpp"
#include "sys/system.hpp"

#include <functional>
#include <string>

namespace sharefs::plan {

struct ApplyOptions {
  std::string command;                               ///< for the journal
  sys::Identity identity = {};                       ///< for the journal: asked before the host lock was taken
  std::chrono::milliseconds group_deadline{120'000}; ///< a group that has not ended by then starts no further step
  std::size_t parallel = 16;                         ///< groups at the same time
  /// Called when a step begins and when it ended (from the calling thread's point of view serialised). May be empty.
  std::function<void(const Step&, const StepResult*)> progress;
  /// Between the unnamed group, once all of it is done, and the others, which an error leaves undone: for what can be
  /// held only where that group has made the place for it.
  std::function<Result<void>()> before_groups = {};
  Note note = {}; ///< from the step's thread, serialised; may be empty
};

/// Do the steps. Before each one the intent is fsynced to the journal; an action whose `before` does not hold fails
/// with `conflict`. A failure ends its group only. After a SIGINT or SIGTERM (see interrupted()) the running steps end,
/// the rest is skipped and Report::interrupted is set. An action that finds its work done already is `unchanged`.
Report apply(const Plan& plan, sys::System& system, const Journal& journal, const ApplyOptions& options);

/// One action, without a journal: for apply and for tests.
Result<Outcome> apply_action(const Action& action, sys::System& system);

using sys::install_interrupt_handlers;
using sys::interrupted;

} // namespace sharefs::plan
