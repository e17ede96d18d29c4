#pragma once
// Names of environments, and the names that sharefs gives to what it moves aside for them. Pure.
#include "base/result.hpp"

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace sharefs::conda {

/// May this be the name of a shared environment? Stricter than conda's own rule (no `/`, space, `:`, `#`; conda
/// base/context.py): also no leading dot or dash, no control characters, and none of sharefs' own backup names. `base`
/// is refused because it is the installation, not an environment below it. Error `usage` tells the reason.
Result<void> check_environment_name(std::string_view name);

/// `NAME.sharefs-backup-YYYYMMDD-HHMMSS`, in UTC.
std::string backup_name(std::string_view name, std::chrono::system_clock::time_point when);
/// The newest backup of exactly `name` among the names in a directory; empty if there is none.
std::string newest_backup(const std::vector<std::string>& entries, std::string_view name);

} // namespace sharefs::conda
