#pragma once
// Answers of many nodes, printed for a person: equal answers are printed once.
#include "cli/context.hpp"
#include "fleet/outcome.hpp"

#include <vector>

namespace sharefs::cli {

/// Prints the plans that nodes have answered to `--check`; equal plans once, with the names of their nodes.
void show_plans(Context& context, const std::vector<fleet::Outcome>& outcomes);

/// Prints one row per state and reason, then the findings of the nodes; the JSON document gets all of it.
void show_outcomes(Context& context, const std::vector<fleet::Outcome>& outcomes);

} // namespace sharefs::cli
