#pragma once
// Who may use a directory that sharefs looks after: `access:` of an export, or of a share below a mount.
#include "plan/plan.hpp"
#include "sys/system.hpp"

#include <chrono>
#include <cstdint>
#include <string>

namespace sharefs::plan {

struct DirectoryAccess {
  enum class Kind {
    keep,  ///< as it is; a new directory is its maker's, 0755
    open,  ///< 1777: everyone writes, and deletes his own
    group, ///< of `gid`, `mode` with its setgid bit, and default ACLs, so that umasks do not matter
  };
  Kind kind = Kind::keep;
  std::string group;
  std::uint32_t gid = 0;
  std::uint32_t mode = 02770;
  friend bool operator==(const DirectoryAccess&, const DirectoryAccess&) = default;
};

/// `before` with what is wanted.
Access access_after(const DirectoryAccess& wanted, const Access& before);

/// The step that sets it, and what follows from it for the people who use `directory`, as notes.
void add_access(Plan& plan, const std::string& group, const std::string& directory, const DirectoryAccess& wanted,
                SetAccess change);

/// Of a directory that is there.
struct FoundAccess {
  Access access;
  bool acls = false; ///< its file system can hold a default ACL
  friend bool operator==(const FoundAccess&, const FoundAccess&) = default;
};
/// `guarded`: `permission` where somebody else could replace it. Errors: `not_found`, `permission`, `timeout`.
Result<FoundAccess> read_access(sys::System& system, const std::string& directory, bool guarded,
                                std::chrono::milliseconds deadline = std::chrono::seconds(30));

} // namespace sharefs::plan
