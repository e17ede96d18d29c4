#pragma once
// sanitize() with a machine behind it: asks and answers until nothing is left to ask.
#include "cachefix/shell_sanitize.hpp"

namespace sharefs::cachefix {

struct Decision {
  Sanitized sanitized;
  Facts facts;
};

/// Errors: the mount table cannot be read.
Result<Decision> decide(sys::System& system, const Argv& argv, std::vector<std::string> environment,
                        std::string directory, const LocalChoice& local, const Rules& rules);
/// The same for the text of a script file.
Result<ScriptResult> decide_script(sys::System& system, const std::string& file, const std::string& text,
                                   std::vector<std::string> environment, std::string directory,
                                   const LocalChoice& local, const Rules& rules);

} // namespace sharefs::cachefix
