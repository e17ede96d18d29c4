#pragma once
// The commented sharefs.yaml that `sharefs init` writes. Pure.
#include "cli/commands/init_facts.hpp"

#include <string>

namespace sharefs::cli {

/// A text that config::parse takes, whatever was found: what sharefs.yaml cannot express becomes a comment that says
/// why, and what was not found an example in comments.
std::string init_text(const InitFacts& facts);
/// The section `conda:` of it.
std::string conda_text(const InitFacts& facts);

} // namespace sharefs::cli
