#pragma once
// Reads extended attributes of open files, including ACLs.
#include <functional>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

namespace sharefs::sys {

inline constexpr const char* k_acl_attribute = "system.posix_acl_access";
inline constexpr const char* k_default_acl_attribute = "system.posix_acl_default";

/// True if this errno means that the file system does not support the attribute.
bool is_unsupported_attribute(int error);

/// Returns names and values of the attributes that `wanted` accepts, or errno. The list is empty on a file system
/// without attributes. An attribute that is removed meanwhile is left out, and so is a label (security.*) that this
/// user may not read.
tl::expected<std::vector<std::pair<std::string, std::string>>, int>
read_extended_attributes(int fd, const std::function<bool(std::string_view name)>& wanted);

/// Returns `mode` with the group's bits limited to the rights that the ACL of the file gives its owning group. The
/// group's bits of a file with an ACL are the mask, which also covers named users, but in a copy without the ACL they
/// would be rights of the group. POSIX ACLs and those of NFS 4 servers are read. If the group has no more rights than
/// all others, no ACL is read. If the ACL cannot be read, the group gets the rights of all others. An O_PATH descriptor
/// is sufficient.
/// `withheld` gets the bits (S_IRWXO) that the group or all others have, and a user or group that the ACL names has
/// not: no mode says that, so a copy without the ACL would let them in.
mode_t mode_by_acl(int fd, mode_t mode, mode_t* withheld = nullptr);

} // namespace sharefs::sys
