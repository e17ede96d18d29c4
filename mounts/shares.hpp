#pragma once
// `shares:` of a mount: directories on what is mounted, made once it is there.
#include "base/diagnosis.hpp"
#include "mounts/mount_point.hpp"
#include "plan/directory_access.hpp"
#include "sys/system.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace sharefs::mounts {

struct Share {
  MountPoint point; ///< what it lies on is mounted, or is this host's own directory
  std::string path; ///< absolute, below the point's target
  plan::DirectoryAccess access;
};

struct SeenShare {
  sys::Entry top;                         ///< the mount point
  sys::Entry entry;                       ///< the directory; no link is followed
  sys::Entry guarded;                     ///< the same, `unknown` where somebody else could replace it
  sys::Entry above;                       ///< of a missing one: the nearest directory above it, with `writable`
  std::optional<plan::FoundAccess> found; ///< of the directory, of a missing one of the nearest above it
  std::optional<Error> failure = {};      ///< why it was not found out
};

/// In their order.
std::vector<SeenShare> probe_shares(sys::System& system, const std::vector<Share>& shares,
                                    std::chrono::milliseconds deadline);

struct SharePlan {
  plan::Plan plan;
  Diagnoses diagnoses; ///< SF241 not for us, SF242 another's, SF243 not a directory that can be used
};
/// One group per mount. A directory of somebody else is left as it is; each change of one that is there is in the plan.
SharePlan plan_shares(const std::vector<Share>& shares, const std::vector<SeenShare>& seen, const sys::Identity& self);

/// Directories that the plan made, and that became somebody else's: the server squashes root (SF241).
Diagnoses diagnose_made(const plan::Plan& plan, const std::vector<Share>& shares, const std::vector<SeenShare>& after,
                        const sys::Identity& self);

} // namespace sharefs::mounts
