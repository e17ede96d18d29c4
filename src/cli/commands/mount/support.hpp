#pragma once
// What mount, umount, recover and status share: from sharefs.yaml and the command line to the mounts room.
#include "cli/command.hpp"
#include "cli/context.hpp"
#include "cli/execute.hpp"
#include "mounts/boot.hpp"
#include "mounts/holders.hpp"
#include "mounts/plan_unmount.hpp"
#include "mounts/probe.hpp"
#include "mounts/recover.hpp"

#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace sharefs::cli {

/// Every mount of the configuration; none for nullptr.
std::vector<mounts::MountPoint> mount_points(sys::System& system, const config::Config* config);

/// What mount, umount and recover are to work on.
struct ChosenMounts {
  std::vector<mounts::MountPoint> points;
  std::chrono::milliseconds timeout; ///< --timeout
};
/// The mounts that the words of the command line mean: names, mount points, or all with --all. `usage` error if neither
/// or both are given, `not_found` with a "did you mean" hint for an unknown name.
/// `config` may be nullptr. With `unknown_paths` a path that nobody configured is taken as a target of its own (without
/// a server).
Result<ChosenMounts> choose_mounts(Context& context, const config::Config* config, const Arguments& arguments,
                                   bool unknown_paths);

/// `permission` for others than root.
Result<void> require_root_for_mounts(const Context& context);

/// --timeout as given; at least 1 ms.
inline constexpr OptionSpec k_servers_timeout{
    .names = "--timeout", .value = "TIME", .help = "how long to wait for the servers' answers", .fallback = "5s"};
Result<std::chrono::milliseconds> timeout_of(const Arguments& arguments);

/// mounts::probe with a line of progress.
Result<mounts::Observation> observe(Context& context, const mounts::ProbeRequest& request);
/// Writes a test file on each point, and reports. Returns the targets that failed.
std::set<std::string> verify(Context& context, const std::vector<mounts::MountPoint>& points,
                             std::chrono::milliseconds deadline);

inline constexpr std::chrono::milliseconds k_holders_deadline{2000};
/// Who uses each of `mounts`: after what `head` reports of it, a line for each process; and `holders` of the JSON
/// document.
void report_holders(Context& context, const std::vector<sys::MountEntry>& mounts,
                    const std::function<void(const std::string& target, const mounts::HolderReport&)>& head);
/// Who must stop before mounts get other options than they have, where that is not possible in place.
void report_holders_of_different(Context& context, const mounts::Observation& seen);

/// mounts::probe_recovery with a line of progress.
mounts::RecoveryRequest probe_recovery(Context& context, mounts::Observation seen,
                                       std::vector<mounts::MountPoint> wanted);

/// The targets of those Mount or Unmount steps of a report that were done (or were done already), without those of
/// staged images, which are no mounts of sharefs.yaml.
std::set<std::string> mounted_by(const plan::Plan& plan, const plan::Report& report);
std::set<std::string> unmounted_by(const plan::Plan& plan, const plan::Report& report);
/// The staged images whose steps failed.
std::size_t count_failed_images(const plan::Plan& plan, const plan::Report& report);
/// The targets of the Unmount steps that failed as busy.
std::set<std::string> busy_targets(const plan::Plan& plan, const plan::Report& report);

/// {name, source, target, state, mounted, latency_us, size_bytes, used_bytes, options, differences, detail}
nlohmann::ordered_json to_json(const mounts::MountState& state);
/// The states as the `mounts` of the JSON document.
void put_states(Context& context, const std::vector<mounts::MountState>& states);

} // namespace sharefs::cli
