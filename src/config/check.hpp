#pragma once
// A tree against the key table: kinds, unknown, duplicate and missing keys, choices, and the rule of every value.
#include "config/source.hpp"
#include "config/tree.hpp"

namespace sharefs::config {

void check_against_keys(const Node& root, FirstProblem& problem);

} // namespace sharefs::config
