#pragma once
// The one way to change anything: show, (--dry-run, --check), confirm, lock, apply, report.
#include "cli/context.hpp"
#include "plan/host_lock.hpp"
#include "plan/journal.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace sharefs::cli {

/// What a command wants to do, as the machine is now.
struct Proposal {
  plan::Plan plan;
  std::string nothing;      ///< said when the plan is empty: "all mounts are as they should be"; "": nothing is said
  bool short_lived = false; ///< other programs may change what it is made from: made anew after the answer
  std::function<Result<void>()> before_groups = {}; ///< see plan::ApplyOptions
  /// before_groups copies, say: other changes of this host, also by this user, do not wait for it. What it needs alone
  /// it holds by other means.
  bool takes_long = false;
};

struct Executed {
  int exit_code = 0;
  std::optional<plan::Report> report; ///< nullopt: nothing was applied (empty plan, --dry-run, --check, the answer no)
  [[nodiscard]] bool applied() const { return report.has_value(); }
  /// Ended by --check, by the answer no, or by Ctrl-C: `exit_code` is the command's.
  [[nodiscard]] bool stopped() const { return (!applied() && exit_code != 0) || (applied() && report->interrupted); }
};

/// `propose` reads the machine and makes the plan. If another sharefs has changed something by the time the host lock
/// is ours, or the plan is short-lived, it is asked again, and a plan that is different now is shown again and needs a
/// new consent: what a command keeps from its look, it must set anew in `propose`. Plan and report go into the
/// envelope. Under --dry-run and --check the plan is data, on stdout. Errors: `usage` when there is no terminal and no
/// --yes; `busy` when another sharefs holds the host.
Result<Executed> execute(Context& context, const std::function<Result<Proposal>()>& propose);

/// A further plan of the same command, made of what its first one has changed: the JSON document has both as one.
Result<Executed> execute_further(Context& context, const std::function<Result<Proposal>()>& propose);

/// A plan that does not depend on what another sharefs may have changed, but for what its actions check themselves.
Result<Executed> execute(Context& context, const plan::Plan& plan, std::string_view nothing);

/// Asks whether to go on with what was shown; true without a question for --yes, false: the answer was no. Errors:
/// `usage` where there is no terminal, `interrupted`.
Result<bool> ask_consent(Context& context);

/// Executes the plan that takes an entry of the journal back. apply() marks the entry as undone. `look` may add to the
/// notes of the plan before it is shown.
Result<Executed> take_back(Context& context, const std::string& id,
                           const std::function<Result<void>(plan::Plan&)>& look = nullptr);
/// The same without a question, for what was applied just now and is not as wanted: its consent covers this.
Result<void> roll_back(Context& context, const std::string& journal_id, std::string_view why);

/// A lock of this host (plan::HostLock); who holds it is said while it is waited for.
Result<plan::HostLock> take_lock(Context& context, const std::string& directory, std::chrono::milliseconds wait,
                                 const std::string& name = "lock");

/// Where this user's changes on this host are kept.
Result<std::string> state_directory(Context& context);
/// The journal of this user on this host.
Result<plan::Journal> journal_of(Context& context);
/// SF604: the newest run of this user here was cut off. SF607: the journal cannot be written, or its newest change not
/// read; without a journal nothing is changed.
Result<Diagnoses> diagnose_journal(Context& context);

} // namespace sharefs::cli
