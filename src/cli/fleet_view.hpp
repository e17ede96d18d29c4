#pragma once
// Answers of many nodes as a person reads them: what is equal stands once.
#include "cli/context.hpp"
#include "fleet/outcome.hpp"

#include <vector>

namespace sharefs::cli {

/// What nodes have to do, by their answers to `--check`: equal plans once, with the nodes that have them.
void show_plans(Context& context, const std::vector<fleet::Outcome>& outcomes);

/// One row per state and reason, then what nodes found wrong; all of it into the JSON document.
void show_outcomes(Context& context, const std::vector<fleet::Outcome>& outcomes);

} // namespace sharefs::cli
