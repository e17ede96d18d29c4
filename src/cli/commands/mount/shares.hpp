#pragma once
// `shares:` of the mounts, translated from sharefs.yaml for the mounts room.
#include "cli/context.hpp"
#include "config/config.hpp"
#include "mounts/probe.hpp"
#include "mounts/shares.hpp"

#include <chrono>
#include <set>
#include <string>
#include <vector>

namespace sharefs::cli {

/// True if one of the points has `shares:` in sharefs.yaml.
bool has_shares(const config::Config& config, const std::vector<mounts::MountPoint>& points);

/// Returns the mounts on which directories can be made now: those with a `good` target, and this host's own
/// directories. An automount that nobody has used yet is left out, with a message.
std::vector<mounts::MountPoint> ready_points(Context& context, const config::Config& config,
                                             const mounts::Observation& seen, const std::set<std::string>& good);

/// The shares of `ready` mounts, as the mounts room reads them; `found` reports those that cannot be set (SF243).
struct WantedShares {
  std::vector<mounts::Share> shares;
  Diagnoses found;
};
WantedShares wanted_shares(sys::System& system, const config::Config& config,
                           const std::vector<mounts::MountPoint>& ready);
/// Returns the targets of the points about which `found` has an error.
std::set<std::string> with_errors(const std::vector<mounts::MountPoint>& ready, const Diagnoses& found);

} // namespace sharefs::cli
