#pragma once
// Private to plan: POSIX ACLs as text, of what an open descriptor (O_PATH will do) stands for. In a child.
#include "base/result.hpp"

#include <cstdint>
#include <string>
#include <sys/acl.h>

namespace sharefs::plan {

/// The name under which calls that take a path reach an open O_PATH descriptor.
std::string by_descriptor(int fd);

/// Does the file system of this directory have default ACLs?
bool holds_acls(int fd);
/// Short text form with numeric ids; "" for none, also on file systems without ACLs. An access ACL that says no more
/// than the mode is none.
Result<std::string> read_acl(int fd, acl_type_t type, const std::string& path);
/// "" takes it away. `unsupported` if the file system has none.
Result<void> write_acl(int fd, acl_type_t type, const std::string& path, const std::string& text);
bool same_acl(const std::string& a, const std::string& b);

/// An access ACL with more than the mode, after the owning group was given `bits`. Nobody else gets more: whom the mask
/// held back before loses what it held back. `mask`: of the result, which the mode shows as the group's bits.
std::string acl_with_group(const std::string& text, std::uint32_t bits, std::uint32_t& mask);

} // namespace sharefs::plan
