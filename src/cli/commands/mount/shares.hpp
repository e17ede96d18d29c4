#pragma once
// `shares:` of the mounts: from sharefs.yaml to the mounts room, and into force.
#include "cli/context.hpp"
#include "config/config.hpp"
#include "mounts/probe.hpp"
#include "mounts/shares.hpp"

#include <chrono>
#include <set>
#include <string>
#include <vector>

namespace sharefs::cli {

bool has_shares(const config::Config& config, const std::vector<mounts::MountPoint>& points);

/// What is there now, so that its directories can be made: those of `good` targets that are mounted, and this host's
/// own directories. An automount that nobody has used yet is left, which is said.
std::vector<mounts::MountPoint> ready_points(Context& context, const config::Config& config,
                                             const mounts::Observation& seen, const std::set<std::string>& good);

/// `shares:` of `ready` as the mounts room takes them. `found` has what cannot be set (SF243).
struct WantedShares {
  std::vector<mounts::Share> shares;
  Diagnoses found;
};
WantedShares wanted_shares(sys::System& system, const config::Config& config,
                           const std::vector<mounts::MountPoint>& ready);
/// The targets of those points about which `found` has an error.
std::set<std::string> with_errors(const std::vector<mounts::MountPoint>& ready, const Diagnoses& found);

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
