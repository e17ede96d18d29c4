#pragma once
// The names that sharefs gives to what it moves aside for a link. Pure.
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace sharefs::conda {

/// `NAME.sharefs-backup-YYYYMMDD-HHMMSS`, in UTC.
std::string backup_name(std::string_view name, std::chrono::system_clock::time_point when);
/// The newest backup of exactly `name` among the names in a directory; empty if there is none.
std::string newest_backup(const std::vector<std::string>& entries, std::string_view name);

} // namespace sharefs::conda
