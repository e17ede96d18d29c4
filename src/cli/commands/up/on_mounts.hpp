#pragma once
// What is on mounts or can be checked only there: the directories of `shares:`, and links from the homes to the store.
#include "cli/commands/mount/support.hpp"
#include "cli/commands/up/part.hpp"
#include "cli/context.hpp"
#include "conda/link.hpp"
#include "config/config.hpp"
#include "mounts/probe.hpp"
#include "mounts/shares.hpp"

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace sharefs::cli {

/// True if one of the points has `shares:` in sharefs.yaml.
bool has_shares(const config::Config& config, const std::vector<mounts::MountPoint>& points);

/// All links of sharefs.yaml in the homes of this host, with their present state.
struct AllLinks {
  conda::LinkRequest request;
  conda::LinkState state;
};
/// Reads the state of all these links.
Result<AllLinks> probe_links(sys::System& system, const config::Config& config);

struct OnMounts {
  std::vector<mounts::MountPoint> ready; ///< mounts that are there
  std::vector<mounts::Share> shares;     ///< of these mounts
  std::optional<AllLinks> links;         ///< nullopt: no links are to be made here, or not yet
  plan::Plan plan;
  std::size_t made = 0; ///< the number of its first steps that make directories of `shares:`
  Diagnoses found;
  std::size_t failed = 0; ///< number of mounts, homes and stores for which something cannot be done
};
/// Plans the directories of `shares:` on the `ready` mounts. Those that cannot be set are reported (SF243).
OnMounts plan_shares(sys::System& system, const config::Config& config, std::vector<mounts::MountPoint> ready,
                     std::chrono::milliseconds deadline);
/// Plans it. `good` are the targets that are mounted now. With `part` nullptr it plans only directories, no links.
Result<OnMounts> plan_on_mounts(Context& context, const config::Config& config, const HostPart* part,
                                const MountWork& mounts, const std::set<std::string>& good,
                                std::chrono::milliseconds deadline);

/// Calls `replan` to fill `on`, and executes its plan as a further plan of this command.
Result<Executed> execute_on_mounts(Context& context, OnMounts& on, const std::function<Result<void>()>& replan);

/// Checks the directories that were made. If their server squashes root they belong to another user; they are reported
/// (SF241) and removed again. The consent to make them covers that.
Result<void> check_shares_made(Context& context, OnMounts& done, std::chrono::milliseconds deadline);

} // namespace sharefs::cli
