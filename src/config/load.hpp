#pragma once
#include "base/result.hpp"
#include "config/config.hpp"

#include <string>
#include <string_view>
#include <sys/types.h>

namespace sharefs::config {

/// Text of sharefs.yaml -> Config. `file` is only for messages. Errors (code `config`): `FILE:LINE:COLUMN: what`, the
/// source line with a caret in Error::context, a "did you mean" hint for unknown keys and values. Unknown and duplicate
/// keys, wrong types and references to servers that do not exist are errors; the first in the file is reported.
Result<Config> parse(std::string_view yaml, const std::string& file);

/// May a file with this owner and mode (07777) be trusted by a process with this effective uid? As root: owned by root
/// and not writable by group or others. As another user: owned by that user or root, not writable by others.
/// Error `permission` names the reason and the chmod/chown that cures it.
Result<void> check_trust(const std::string& file, uid_t owner, unsigned mode, uid_t euid);

} // namespace sharefs::config
