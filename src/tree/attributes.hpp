#pragma once
// What a file or directory has beside its content.
#include "base/result.hpp"
#include "sys/process/fd.hpp"

#include <optional>
#include <string>
#include <sys/stat.h>
#include <utility>
#include <vector>

namespace sharefs::tree {

/// Extended attributes that are copied: user.*, and the ACLs, which have these names as well. (security.* is the
/// host's policy, trusted.* the file system's own; system.nfs4_acl names users of another server.)
struct Attributes {
  std::vector<std::pair<std::string, std::string>> values;
  bool capability = false; ///< security.capability: a program that gets rights
  mode_t group = S_IRWXG;  ///< what an ACL that is not copied leaves the group of the mode
  std::vector<std::pair<std::string, std::string>>
      overlay; ///< of a layer: the marks of overlayfs, without their prefix
  [[nodiscard]] mode_t narrowed(mode_t mode) const;
  [[nodiscard]] bool is_whiteout() const; ///< of an empty file: stands for nothing
  [[nodiscard]] bool is_opaque() const;   ///< a directory that hides what was below it
  [[nodiscard]] bool is_part() const;     ///< the rest of it lies in the layer below
};
bool has_attributes(int fd); ///< does its file system know any?
/// errno in the unexpected; a file system without attributes has none.
tl::expected<Attributes, int> read_attributes(int fd, bool layer = false);
bool has_capabilities(int fd); ///< may a file on its file system have some?
/// Would what is made in this directory inherit an ACL?
bool has_default_acl(int directory);

/// Gives the open file or directory `to`, which has `now`, the owner, attributes and mode of an original. `inherited`:
/// it may have an ACL of the directory that it was made in. What this user may not give, or the file system does not
/// take, is left out. 0 or errno.
int give_attributes(int to, const struct stat& now, const struct stat& original, const Attributes& attributes,
                    bool inherited);
/// The mode for something whose owner or group could not be kept: the new group gets no more than all others.
mode_t mode_without_group(mode_t mode);
/// utimensat(2) of `name` in `directory`, or of `directory` itself (nullptr). 0 or errno.
int give_times(int directory, const char* name, const struct stat& original);

/// statx(2) of what the server has now, not what this host remembers. False with errno.
bool stat_now(int directory, const char* name, struct stat& status);
/// The same file, and nothing was written to it or changed about it.
bool same_state(const struct stat& one, const struct stat& other);
bool same_time(const struct stat& one, const struct stat& other);

} // namespace sharefs::tree
