#pragma once
// What has to be there before the program starts: node-local directories, links and copies. Small and safe to repeat.
#include "cachefix/sanitize.hpp"

namespace sharefs::cachefix {

/// Makes the directories (0700, with the user's own directory above them), links and copies of a decision. A copy never
/// replaces a file and goes through no link: where its name is taken it gets another, and the decision is changed to
/// name that. Where it cannot be made at all the command keeps the original, and `decision` says so. Errors:
/// `permission` if somebody else owns the user's directory, `failed` with the reason otherwise.
Result<void> prepare(sys::System& system, Sanitized& decision, const LocalRoot& root);

} // namespace sharefs::cachefix
