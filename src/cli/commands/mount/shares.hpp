#pragma once
// `shares:` of the mounts: from sharefs.yaml to the mounts room, and into force.
#include "cli/context.hpp"
#include "mounts/mount_point.hpp"

#include <chrono>
#include <set>
#include <string>
#include <vector>

namespace sharefs::cli {

bool has_shares(const config::Config& config, const std::vector<mounts::MountPoint>& points);

struct SharedDirectories {
  int stopped = 0;              ///< an exit code: ended by --check, by the answer no, or by Ctrl-C
  std::set<std::string> failed; ///< targets of mounts whose directories are not all as sharefs.yaml says
};
/// The directories of `shares:` below `ready`, which are mounted: a plan of its own behind that of the mounts, since
/// what is there shows only now. Taken back if they became somebody else's (root_squash).
Result<SharedDirectories> share_directories(Context& context, const config::Config& config,
                                            const std::vector<mounts::MountPoint>& ready,
                                            std::chrono::milliseconds deadline);

} // namespace sharefs::cli
