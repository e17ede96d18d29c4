#pragma once
// A plan and its report as text for a person.
#include "plan/plan.hpp"

#include <string>
#include <string_view>

namespace sharefs::ui {

/// Notes; then one line per step under its group's heading (none if there is only one group, or none has several
/// lines, nor for the one without a name): a mark (`+` makes, `-` takes away, `~` changes, `>` runs a program), what is
/// done, why, `(cannot be undone)`; diffs indented below. Bookkeeping is shown if `all`, or, without diffs, where the
/// plan is nothing else.
std::string plan_text(const plan::Plan& plan, bool colour, bool all = true);

/// "3 done, 1 failed, 2 skipped; undo with `sharefs undo ID`", which is `undo`; empty if the plan had no steps. Counts
/// what plan_text shows, and whatever failed.
std::string summary_text(const plan::Plan& plan, const plan::Report& report, std::string_view undo, bool all = true);

} // namespace sharefs::ui
