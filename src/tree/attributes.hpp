#pragma once
// Owner, mode, times and extended attributes of a file or directory.
#include "base/result.hpp"
#include "sys/process/fd.hpp"

#include <optional>
#include <string>
#include <sys/stat.h>
#include <utility>
#include <vector>

namespace sharefs::tree {

/// Extended attributes that are copied: user.* and the POSIX ACLs, which are stored as attributes. (security.* is the
/// host's policy, trusted.* belongs to the file system, and system.nfs4_acl names users of another server.)
struct Attributes {
  std::vector<std::pair<std::string, std::string>> values;
  bool capability = false; ///< the file has security.capability: a program that gains privileges
  mode_t group = S_IRWXG;  ///< the rights that an ACL that is not copied gives the group
  bool opaque = false;     ///< the directory of a layer hides the directory in the layer below
  /// Returns the mode without those bits of the group that an ACL, which is not copied, does not give it.
  [[nodiscard]] mode_t narrowed(mode_t mode) const;
};
/// Returns the attributes that are copied, or errno. On a file system without attributes there are none. The marks of
/// overlayfs in a `layer` are not copied.
tl::expected<Attributes, int> read_attributes(int fd, bool layer = false);
bool has_capabilities(int fd); ///< true if files of this file system can have capabilities
/// True if new entries of this directory would inherit an ACL.
bool has_default_acl(int directory);

/// Gives the open file or directory `to`, whose status is `now`, the owner, attributes and mode of an original.
/// `inherited`: it may have inherited an ACL from its directory. Anything that this user may not set, or the file
/// system does not support, is left out. Returns 0 or errno.
int set_attributes(int to, const struct stat& now, const struct stat& original, const Attributes& attributes,
                   bool inherited);
/// Returns the mode for an entry whose owner or group could not be kept: the new group gets no more rights than all
/// others.
mode_t mode_without_group(mode_t mode);
/// Sets the times of `name` in `directory`, or of `directory` itself (nullptr). Returns 0 or errno.
int set_times(int directory, const char* name, const struct stat& original);

/// Calls statx(2) and asks the server, so that the attribute cache of this host is not used. False with errno.
bool stat_now(int directory, const char* name, struct stat& status);
/// True if both are the same file, and neither its content nor its attributes have changed.
bool same_state(const struct stat& one, const struct stat& other);
bool same_time(const struct stat& one, const struct stat& other);

} // namespace sharefs::tree
