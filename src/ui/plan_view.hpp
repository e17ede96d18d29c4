#pragma once
// A plan and its report as text for a person.
#include "plan/plan.hpp"

#include <string>
#include <string_view>

namespace sharefs::ui {

/// Returns the notes, then one line per step below the heading of its group: a mark (`+` makes, `-` takes away, `~`
/// changes, `>` runs a program), the action, its reason, `(cannot be undone)`; diffs are indented below. There are no
/// headings where there is only one group, or where no group has several lines; the unnamed group has none. Bookkeeping
/// steps are printed if `all`, or, without diffs, where the plan has no other steps.
std::string plan_text(const plan::Plan& plan, bool colour, bool all = true);

/// Returns "3 done, 1 failed, 2 skipped; undo with `sharefs undo ID`", where `undo` is the command; "" if the plan had
/// no steps. It counts the steps that plan_text() prints, and every failed one.
std::string summary_text(const plan::Plan& plan, const plan::Report& report, std::string_view undo, bool all = true);

} // namespace sharefs::ui
