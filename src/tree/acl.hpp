#pragma once
// POSIX ACLs as text, of what an open descriptor (O_PATH will do) stands for. In a child.
#include "base/result.hpp"

#include <cstdint>
#include <string>
#include <sys/acl.h>

namespace sharefs::tree {

/// Does the file system of this directory have default ACLs?
bool holds_acls(int fd);
/// Short text form with numeric ids; "" for none, also on file systems without ACLs. An access ACL that says no more
/// than the mode is none.
Result<std::string> read_acl(int fd, acl_type_t type, const std::string& path);
/// "" takes it away. `unsupported` if the file system has none.
Result<void> write_acl(int fd, acl_type_t type, const std::string& path, const std::string& text);
bool same_acl(const std::string& a, const std::string& b);

/// Default ACL of a directory with this mode: what is made below is as open as the directory, whatever the umask.
std::string default_acl(std::uint32_t mode);

} // namespace sharefs::tree
