#pragma once
// `shares:` of the mounts: from sharefs.yaml to the mounts room.
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

} // namespace sharefs::cli
