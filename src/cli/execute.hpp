#pragma once
// execute(): the one way to change anything: show, (--dry-run, --check), confirm, lock, apply, report.
#include "cli/context.hpp"
#include "plan/host_lock.hpp"
#include "plan/journal.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace sharefs::cli {

/// The change that a command proposes, for the present state of the machine.
struct Proposal {
  plan::Plan plan;
  std::string nothing; ///< message for an empty plan: "all mounts are as they should be"; "": no message
  /// Other programs may change the facts it is based on, so it is made anew after the user's answer.
  bool short_lived = false;
  std::function<Result<void>()> before_groups = {}; ///< see plan::ApplyOptions
  /// before_groups takes long, for example because it copies. Other changes of this host, also of this user, do not
  /// wait for it; it must protect what it alone may change by other means.
  bool takes_long = false;
};

struct Executed {
  int exit_code = 0;
  /// Nullopt: nothing was applied (empty plan, --dry-run, --check, or the user's answer was no).
  std::optional<plan::Report> report;
  [[nodiscard]] bool applied() const { return report.has_value(); }
  /// True if the command ends here, by --check, by the answer no, or by Ctrl-C; `exit_code` is the exit code of the
  /// command.
  [[nodiscard]] bool stopped() const { return (!applied() && exit_code != 0) || (applied() && report->interrupted); }
};

/// Makes a plan with `propose`, which reads the machine, and executes it. `propose` is called again if another sharefs
/// has changed something before this one got the host lock, or if the plan is short-lived. A plan that differs then is
/// shown and must be confirmed again. So `propose` must set anew every value that the command keeps from it. Plan and
/// report are put into the envelope. With --dry-run and --check the plan is data, on stdout. Errors: `usage` without a
/// terminal and without --yes; `busy` if another sharefs holds the host lock.
Result<Executed> execute(Context& context, const std::function<Result<Proposal>()>& propose);

/// Calls `work`, which executes a further plan of the same command. The JSON document has all plans as one, and names
/// the journal entries of all.
Result<Executed> execute_more(Context& context, const std::function<Result<Executed>()>& work);
/// Executes a second plan of the same command, made from what the first one has changed, by execute_more().
Result<Executed> execute_further(Context& context, const std::function<Result<Proposal>()>& propose);

/// Executes a plan that does not depend on what another sharefs may have changed, beyond what its actions check
/// themselves.
Result<Executed> execute(Context& context, const plan::Plan& plan, std::string_view nothing);

/// Asks whether to apply the plan that was shown. Returns true without a question for --yes. Returns false if the
/// answer was no, and has said then that nothing was changed. Errors: `usage` without a terminal, `interrupted`.
Result<bool> ask_consent(Context& context);

/// Executes the plan that undoes an entry of the journal. apply() marks the entry as undone. `inspect` may check the
/// plan and add notes before it is shown.
Result<Executed> take_back(Context& context, const std::string& id,
                           const std::function<Result<void>(plan::Plan&)>& inspect = nullptr);
/// Undoes, without a question, what was just applied and has turned out wrong: the consent to the change covers this.
Result<void> roll_back(Context& context, const std::string& journal_id, std::string_view why);

/// Takes a lock of this host (plan::HostLock). While it waits a message names the holder.
Result<plan::HostLock> take_lock(Context& context, const std::string& directory, std::chrono::milliseconds wait,
                                 const std::string& name = "lock");

/// Returns the directory of this user's journal and lock on this host.
Result<std::string> state_directory(Context& context);
/// Returns the journal of this user on this host.
Result<plan::Journal> journal_of(Context& context);
/// Returns an error ("it is read-only", "its disk is full") if this user cannot write to `directory`; none for one that
/// does not exist.
Result<void> check_writable(sys::System& system, const std::string& directory);
/// Reports SF604 if the newest run of this user was cut off, and SF607 if the journal cannot be written or its newest
/// change cannot be read; without a journal nothing is changed.
Result<Diagnoses> diagnose_journal(Context& context);

} // namespace sharefs::cli
