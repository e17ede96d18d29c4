#pragma once
// The one way to change anything: show, (--dry-run, --check), confirm, lock, apply, report.
#include "cli/context.hpp"
#include "plan/plan.hpp"

#include <optional>

namespace sharefs::cli {

struct Executed {
  int exit_code = 0;
  std::optional<plan::Report> report; ///< nullopt: nothing was applied (empty plan, --dry-run, --check)
  [[nodiscard]] bool applied() const { return report.has_value(); }
};

/// `nothing` is said when the plan is empty ("all mounts are as they should be"). Plan and report go into the
/// envelope. Errors: `usage` when there is no terminal and no --yes; `busy` when another sharefs holds the host.
Result<Executed> execute(Context& context, const plan::Plan& plan, std::string_view nothing);

} // namespace sharefs::cli
