#pragma once
// What lies on mounts, or can be judged only where they are: the directories of `shares:`, and links from the homes to
// the store.
#include "cli/commands/mount/shares.hpp"
#include "cli/commands/mount/work.hpp"
#include "cli/commands/up/part.hpp"
#include "conda/link.hpp"

#include <optional>

namespace sharefs::cli {

/// All links of sharefs.yaml in the homes of this host, and what is there of them.
struct AllLinks {
  conda::LinkRequest request;
  conda::LinkState state;
};
Result<AllLinks> probe_links(sys::System& system, const config::Config& config);

struct OnMounts {
  std::vector<mounts::MountPoint> ready; ///< what is there
  WantedShares wanted;
  std::optional<AllLinks> links; ///< nullopt: no links are to be made here, or not yet
  plan::Plan plan;
  std::size_t made = 0; ///< its first steps: the directories of `shares:`
  Diagnoses found;
  std::vector<std::string> messages;
  std::size_t failed = 0; ///< mounts, homes and stores of which something cannot be done
};
/// `good`: targets that are there now. `part`: nullptr for the directories alone, without links.
Result<OnMounts> plan_on_mounts(Context& context, const config::Config& config, const HostPart* part,
                                const MountWork& mounts, const std::set<std::string>& good,
                                std::chrono::milliseconds deadline);

/// What `look` finds to do, as a further plan of this command.
Result<Executed> execute_on_mounts(Context& context, OnMounts& on, const std::function<Result<void>()>& look);

/// Directories that were made and became somebody else's, since their server squashes root, are reported (SF241) and
/// taken away again. The consent to make them covers that.
Result<void> check_shares_made(Context& context, OnMounts& done, std::chrono::milliseconds deadline);

} // namespace sharefs::cli
