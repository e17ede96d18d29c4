#pragma once
// Private to plan: the rights that SetTreeAccess gives.
#include <cstdint>
#include <string>

namespace sharefs::plan {

struct TreeRights {
  std::uint32_t gid = 0, mode = 0;
  std::string acl, default_acl; ///< as read_acl() has them
  friend bool operator==(const TreeRights&, const TreeRights&) = default;
};
/// What something below a directory of `gid` and `mode` should have: the group gets what the owner has, directories
/// also pass the group on, with a default ACL. For others nothing becomes wider.
TreeRights rights_for_group(const TreeRights& before, bool directory, std::uint32_t gid, std::uint32_t mode);

} // namespace sharefs::plan
