#pragma once
// Reads and writes POSIX ACLs as text, on an open descriptor (O_PATH is sufficient). Must be called in a child.
#include "base/result.hpp"

#include <cstdint>
#include <string>
#include <sys/acl.h>

namespace sharefs::tree {

/// True if the file system of this directory supports default ACLs.
bool supports_default_acls(int fd);
/// Returns the short text form with numeric ids; "" if there is no ACL, also on file systems without ACLs. An access
/// ACL that is equivalent to the mode counts as none.
Result<std::string> read_acl(int fd, acl_type_t type, const std::string& path);
/// Sets the ACL; "" removes it. Error `unsupported`: the file system has no ACLs.
Result<void> write_acl(int fd, acl_type_t type, const std::string& path, const std::string& text);
bool same_acl(const std::string& a, const std::string& b);

/// Returns the default ACL for a directory with this mode. New entries get the same rights as the directory, whatever
/// the umask.
std::string default_acl(std::uint32_t mode);

} // namespace sharefs::tree
