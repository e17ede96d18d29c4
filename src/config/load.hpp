#pragma once
#include "base/result.hpp"
#include "config/config.hpp"

#include <string>
#include <string_view>
#include <sys/types.h>

namespace sharefs::config {

struct Checked {
  Config config; ///< what is right
  std::vector<Error> errors;
};
/// Text of sharefs.yaml -> Config and all that is wrong with it, in the order of the file. `file` is only for messages.
/// Errors (code `config`): `FILE:LINE:COLUMN: what`, the source line with a caret in Error::context, and a hint that
/// sharefs would take. Wrong are unknown, duplicate and missing keys, wrong values, and names of servers that look like
/// a typing mistake in one of the file. YAML that cannot be read at all is one error.
Checked check(std::string_view yaml, const std::string& file);
/// As check(), with the first error only.
Result<Config> parse(std::string_view yaml, const std::string& file);

/// May a file with this owner and mode (07777) be trusted by a process with this effective uid? As root: owned by root
/// and not writable by group or others. As another user: owned by that user or root, not writable by others.
/// Error `permission` names the reason and the chmod/chown that cures it.
Result<void> check_trust(const std::string& file, uid_t owner, unsigned mode, uid_t euid);

} // namespace sharefs::config
