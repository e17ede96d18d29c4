#pragma once
// The commented sharefs.yaml that `sharefs init` writes. Pure.
#include "cli/commands/init/facts.hpp"

#include <string>

namespace sharefs::cli {

/// A text that config::parse takes, whatever was found: what sharefs.yaml cannot express becomes a comment that says
/// why, and what was not found an example in comments.
std::string init_text(const InitFacts& facts);
/// What the text holds, in words, and what was left out of it: "1 export and 6 NFS mounts; not taken over: ...".
std::string summary_of(const InitFacts& facts, const std::string& text);

} // namespace sharefs::cli
