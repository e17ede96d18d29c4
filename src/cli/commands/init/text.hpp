#pragma once
// The commented sharefs.yaml that `sharefs init` writes. Pure.
#include "cli/commands/init/facts.hpp"

#include <string>

namespace sharefs::cli {

/// Returns a text that config::parse accepts, whatever was found. Facts that sharefs.yaml cannot express become
/// comments with the reason, and sections without facts become examples in comments.
std::string init_text(const InitFacts& facts);
/// Summarizes the text and what was left out of it: "1 export and 6 NFS mounts; not taken over: ...".
std::string summary_of(const InitFacts& facts, const std::string& text);

} // namespace sharefs::cli
