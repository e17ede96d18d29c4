#pragma once
// The directories of the operating system, whose owner, mode and ACL sharefs never changes.
#include <string>
#include <string_view>

namespace sharefs::exports {

/// Returns the reason why `access:` on this (resolved) directory would open the system to others: "it lies below /usr,
/// which holds programs and libraries that root runs". Empty if the directory is not part of the system.
std::string system_directory_reason(std::string_view directory);

} // namespace sharefs::exports
