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
  sys::Identity identity = {};                       ///< for the journal; it is read before the host lock is taken
  std::chrono::milliseconds group_deadline{120'000}; ///< after this time a group starts no further step
  std::size_t parallel = 16;                         ///< how many groups run at the same time
  /// Called when a step begins, never by two threads at the same time. May be empty.
  std::function<void(const Step&)> begins;
  /// Called after the unnamed group has succeeded and before the other groups, which an error of it skips. For checks
  /// and leases that need what the unnamed group has made. May be empty.
  std::function<Result<void>()> before_groups = {};
  Note note = {}; ///< called by the step's thread, never by two threads at the same time; may be empty
};

/// Does the steps. The intent of each step is fsynced to the journal before it begins. An action whose `before` is not
/// found fails with `conflict`. A failure ends only its own group, but for the reloads of what was done. After a SIGINT
/// or SIGTERM (see interrupted()) the running steps end, the rest is skipped and Report::interrupted is set. An action
/// whose work is done already is `unchanged`.
Report apply(const Plan& plan, sys::System& system, const Journal& journal, const ApplyOptions& options);

/// Does one action without a journal, so that `sharefs undo` does not know it.
Result<Outcome> apply_action(const Action& action, sys::System& system);

using sys::install_interrupt_handlers;
using sys::interrupted;

} // namespace sharefs::plan
