#pragma once
// Owner, mode and POSIX ACLs of an open file or directory (O_PATH is sufficient). ACLs are texts. Must be called in a
// child.
#include "base/result.hpp"

#include <cstdint>
#include <string>
#include <sys/acl.h>
#include <sys/stat.h>

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

/// Owner, mode and default ACL of one file or directory.
struct Access {
  std::uint32_t uid = 0, gid = 0, mode = 0;
  std::string default_acl; ///< of a directory: short text form of acl_from_text(3), "" for none
  friend bool operator==(const Access&, const Access&) = default;
};
template <FieldsOf<Access> A> auto fields(A& a) {
  return named("uid", a.uid, "gid", a.gid, "mode", a.mode, "default_acl", a.default_acl);
}
bool same_access(const Access& a, const Access& b);
Result<Access> read_access(int fd, const struct stat& status, const std::string& path);
/// Changes the access that was read before. At no moment does the new group have the rights that the old mode gave to
/// the old one, or the old group those of the new mode.
Result<void> set_access(int fd, const Access& before, const Access& after, const std::string& path);

} // namespace sharefs::tree
