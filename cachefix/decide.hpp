#pragma once
// sanitize() with a machine behind it: asks and answers until nothing is left to ask.
#include "cachefix/sanitize.hpp"

namespace sharefs::cachefix {

struct Decision {
  Sanitized sanitized;
  Facts facts;
};

/// `roots` is caches.local. Errors: the mount table cannot be read.
Result<Decision> decide(sys::System& system, const Argv& argv, std::vector<std::string> environment,
                        std::string directory, LocalChoice local, const Rules& rules);

} // namespace sharefs::cachefix
