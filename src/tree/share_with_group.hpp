#pragma once
// Gives a group access to all entries of a tree.
#include "tree/here.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace sharefs::tree {

struct GroupRights {
  std::uint32_t gid = 0, mode = 0;
  std::string default_acl; ///< of a directory, in the form of read_acl()
  friend bool operator==(const GroupRights&, const GroupRights&) = default;
};
/// Returns the rights that an entry below a directory with `gid` and `mode` should have: the group gets the rights of
/// the owner, and directories also pass the group on, with a default ACL. All others get no more rights than before.
GroupRights rights_for_group(const GroupRights& before, bool directory, std::uint32_t gid, std::uint32_t mode);

struct GroupShare {
  std::uint32_t gid = 0, mode = 02770; ///< of the directory itself, which is not changed
  bool check_only = false;             ///< change nothing, and stop at the first entry that would be changed
};

/// The result for a tree. Entries that are counted elsewhere than in `changed` were not changed.
struct GroupReport {
  static constexpr std::size_t k_most_named = 5;
  std::uint64_t changed = 0;
  std::uint64_t several_names = 0; ///< files with further names, which may be outside of the tree
  std::uint64_t programs = 0;      ///< programs with set-id bits or capabilities
  std::uint64_t acls = 0;          ///< files and directories with an access ACL
  std::uint64_t mounts = 0, other = 0, since = 0, failed = 0;
  std::vector<std::string> named = {}; ///< the first few entries that were left
  std::string first_failure = {};
};
template <FieldsOf<GroupReport> R> auto fields(R& r) {
  return named("changed", r.changed, "several_names", r.several_names, "programs", r.programs, "acls", r.acls, "mounts",
               r.mounts, "other", r.other, "since", r.since, "failed", r.failed, "named", r.named, "first_failure",
               r.first_failure);
}
/// Gives the group access to all entries below the directory. An Error concerns the directory itself or the whole work;
/// failures of single entries are counted.
Result<GroupReport> share_with_group(const Place& place, const GroupShare& share, const Options& options,
                                     const OnProgress& progress = {});

} // namespace sharefs::tree
