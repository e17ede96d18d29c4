#pragma once
// Opening what lies in a tree to a group.
#include "tree/here.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace sharefs::tree {

struct GroupRights {
  std::uint32_t gid = 0, mode = 0;
  std::string default_acl; ///< of a directory, as read_acl() has it
  friend bool operator==(const GroupRights&, const GroupRights&) = default;
};
/// What something below a directory of `gid` and `mode` should have: the group gets what the owner has, directories
/// also pass the group on, with a default ACL. For others nothing becomes wider.
GroupRights rights_for_group(const GroupRights& before, bool directory, std::uint32_t gid, std::uint32_t mode);

struct GroupShare {
  std::uint32_t gid = 0, mode = 02770; ///< of the directory itself, which is left as it is
  bool only_look = false;              ///< nothing is changed, and the first that would be is enough
};

/// What became of a tree. What is counted elsewhere than in `changed` was left as it was.
struct GroupReport {
  static constexpr std::size_t k_most_named = 5;
  std::uint64_t changed = 0;
  std::uint64_t several_names = 0; ///< files, of which other names may lie elsewhere
  std::uint64_t programs = 0;      ///< with set-id bits or capabilities
  std::uint64_t acls = 0;          ///< files and directories of which an ACL says who gets in
  std::uint64_t mounts = 0, other = 0, since = 0, failed = 0;
  std::vector<std::string> named = {}; ///< the first few of those left
  std::string first_failure = {};
};
template <FieldsOf<GroupReport> R> auto fields(R& r) {
  return named("changed", r.changed, "several_names", r.several_names, "programs", r.programs, "acls", r.acls, "mounts",
               r.mounts, "other", r.other, "since", r.since, "failed", r.failed, "named", r.named, "first_failure",
               r.first_failure);
}
/// Gives what lies below the directory to the group. Errors are of the directory itself, or of the whole work.
Result<GroupReport> share_with_group(const Place& place, const GroupShare& share, const Options& options,
                                     const OnProgress& progress = {});

} // namespace sharefs::tree
