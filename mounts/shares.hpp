#pragma once
// `shares:` of a mount: directories in the mounted file system, made when it is mounted.
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
  MountPoint point; ///< the mount that it lies on, or this host's own directory
  std::string path; ///< absolute, below the point's target
  plan::DirectoryAccess access;
};

struct SeenShare {
  sys::Entry top;                         ///< the mount point
  sys::Entry entry;                       ///< the directory of the share; no link is followed
  sys::Entry guarded;                     ///< the same; `unknown` if somebody else could replace it
  sys::Entry above;                       ///< if it is missing: the nearest directory above it, with `writable`
  std::optional<plan::FoundAccess> found; ///< access of the directory; if it is missing, of the nearest one above it
  std::optional<Error> failure = {};      ///< why the access could not be read
};

/// Reads the state of the shares, in their order.
std::vector<SeenShare> probe_shares(sys::System& system, const std::vector<Share>& shares,
                                    std::chrono::milliseconds deadline);

struct SharePlan {
  plan::Plan plan;
  Diagnoses diagnoses; ///< SF241 we may not make it, SF242 it belongs to somebody else, SF243 it cannot be used
};
/// Plans the directories and their access, with one group per mount. A directory of somebody else is left as it is.
SharePlan plan_shares(const std::vector<Share>& shares, const std::vector<SeenShare>& seen, const sys::Identity& self);

/// Reports directories that the plan has made and that belong to somebody else, because the server squashes users
/// (SF241).
Diagnoses diagnose_made(const plan::Plan& plan, const std::vector<Share>& shares, const std::vector<SeenShare>& after,
                        const sys::Identity& self);

} // namespace sharefs::mounts
