#pragma once
// Gives a group access to all entries of a tree.
#include "tree/acl.hpp"
#include "tree/here.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace sharefs::tree {

/// Returns the access that an entry below a directory with `gid` and `mode` should have: the group gets the rights of
/// the owner, and directories also pass the group on, with a default ACL. All others get no more rights than before.
Access access_for_group(const Access& before, bool directory, std::uint32_t gid, std::uint32_t mode);

struct GroupShare {
  std::uint32_t gid = 0, mode = 02770; ///< of the directory itself, which is not changed
  bool check_only = false;             ///< change nothing, and stop at the first entry that would be changed
};

/// The result for a tree. Left as they are: files with further names, which may be outside of the tree, programs with
/// set-id bits or capabilities, entries with an access ACL, mounts, special files, and what changed meanwhile.
struct GroupReport {
  static constexpr std::size_t k_most_named = 5;
  std::uint64_t changed = 0, left = 0;
  std::vector<std::string> named = {}; ///< the first few entries that were left, with the reason
};
template <FieldsOf<GroupReport> R> auto fields(R& r) {
  return named("changed", r.changed, "left", r.left, "named", r.named);
}
/// Gives the group access to all entries below the directory. After failures of single entries all others are changed,
/// and the Error names the first ones; with GroupShare::check_only they are ignored.
Result<GroupReport> share_with_group(const Place& place, const GroupShare& share, const Options& options,
                                     const OnProgress& progress = {});

} // namespace sharefs::tree
