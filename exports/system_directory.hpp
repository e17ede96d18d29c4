#pragma once
// Directories of the operating system, whose owner, mode and ACL sharefs never changes.
#include <string>
#include <string_view>

namespace sharefs::exports {

/// Why `access:` of this directory (resolved) would open the system to others: "it is below /usr, which holds programs
/// that root runs". Empty: it is none.
std::string system_directory_reason(std::string_view directory);

} // namespace sharefs::exports
