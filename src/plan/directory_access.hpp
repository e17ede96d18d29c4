#pragma once
// The owner, group, mode and default ACL of a directory: `access:` of an export, or of a share below a mount.
#include "plan/plan.hpp"
#include "sys/system.hpp"

#include <chrono>
#include <cstdint>
#include <string>

namespace sharefs::plan {

struct DirectoryAccess {
  enum class Kind {
    keep,  ///< nothing is changed; a new directory belongs to the user who makes it, with mode 0755
    open,  ///< mode 1777: everyone may write, and delete only their own files
    group, ///< group `gid`, `mode` with the setgid bit, and a default ACL, so that umasks have no effect
  };
  Kind kind = Kind::keep;
  std::string group;
  std::uint32_t gid = 0;
  std::uint32_t mode = 02770;
  friend bool operator==(const DirectoryAccess&, const DirectoryAccess&) = default;
};

/// Returns the access that the directory gets: `before` with the changes that `wanted` asks for.
Access access_after(const DirectoryAccess& wanted, const Access& before);

/// Adds the step that sets the access, and notes about its consequences for the people who use `directory`.
void add_access(Plan& plan, const std::string& group, const std::string& directory, const DirectoryAccess& wanted,
                SetAccess change);

/// The access of a directory that exists.
struct FoundAccess {
  Access access;
  bool acls = false; ///< its file system can hold a default ACL
  friend bool operator==(const FoundAccess&, const FoundAccess&) = default;
};
/// Reads the access of a directory in a child. With `guarded` it fails with `permission` if somebody else could replace
/// the directory. Errors: `not_found`, `permission`, `timeout`.
Result<FoundAccess> read_access(sys::System& system, const std::string& directory, bool guarded,
                                std::chrono::milliseconds deadline = std::chrono::seconds(30));

} // namespace sharefs::plan
