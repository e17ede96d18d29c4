#pragma once
// A tree -> the value, and what only the whole file can tell: references and duplicates.
#include "config/source.hpp"
#include "config/tree.hpp"

namespace sharefs::config {

/// Takes a tree that check_against_keys may have found wrong: what does not fit is left out, so that a wrong reference
/// that stands before another mistake is still the one that is reported.
Config fill(const Node& root, const Source& source, FirstProblem& problem);

} // namespace sharefs::config
