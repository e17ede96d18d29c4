#pragma once
// What has to be there before the program starts: node-local directories and links. Small, local and safe to repeat.
#include "cachefix/sanitize.hpp"

namespace sharefs::cachefix {

/// Makes the directories (0700, with the user's own directory above them) and links of a decision. Errors: `permission`
/// if somebody else owns the user's directory, `failed` with the reason otherwise.
Result<void> prepare(sys::System& system, const Sanitized& decision, const LocalRoot& root, uid_t uid);

} // namespace sharefs::cachefix
