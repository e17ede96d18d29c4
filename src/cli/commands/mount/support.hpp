#pragma once
// Shared by mount, umount, recover and status: translates sharefs.yaml and the command line for the mounts room.
#include "cli/command.hpp"
#include "cli/context.hpp"
#include "cli/execute.hpp"
#include "mounts/boot.hpp"
#include "mounts/holders.hpp"
#include "mounts/plan_mount.hpp"
#include "mounts/probe.hpp"
#include "mounts/recover.hpp"

#include <functional>
#include <set>
#include <string>
#include <vector>

namespace sharefs::cli {

/// Returns every mount of the configuration; none for nullptr.
std::vector<mounts::MountPoint> mount_points(sys::System& system, const config::Config* config);

/// Returns the mounts that the command line names: names, mount points, or all with --all. Error `usage` if neither or
/// both are given, or for an unknown name (with a "did you mean" hint). `config` may be nullptr. With `unknown_paths` a
/// path that is not in sharefs.yaml becomes a mount point without a server.
Result<std::vector<mounts::MountPoint>> choose_mounts(Context& context, const config::Config* config,
                                                      const Arguments& arguments, bool unknown_paths);

/// Error `permission` if this user is not root.
Result<void> require_root_for_mounts(const Context& context);

inline constexpr OptionSpec k_servers_timeout{
    .names = "--timeout", .value = "TIME", .help = "how long to wait for the servers' answers", .fallback = "5s"};

/// Calls mounts::probe with a progress line.
Result<mounts::Observation> observe(Context& context, const mounts::ProbeRequest& request);
/// Writes a test file on each point and reports the results. Returns the targets that failed.
std::set<std::string> verify(Context& context, const std::vector<mounts::MountPoint>& points,
                             std::chrono::milliseconds deadline);

inline constexpr std::chrono::milliseconds k_holders_deadline{2000};
/// Prints who uses each of `mounts`: `head` prints the first line about it, then a line for each process follows. The
/// JSON document gets `holders`.
void report_holders(Context& context, const std::vector<sys::MountEntry>& mounts,
                    const std::function<void(const std::string& target, const mounts::HolderReport&)>& head);
/// Prints the processes that must stop before mounts can get other options, if these cannot be changed in place.
void report_holders_of_different(Context& context, const mounts::Observation& seen);

/// Calls mounts::probe_recovery with a progress line.
mounts::RecoveryRequest probe_recovery(Context& context, mounts::Observation seen);

/// Return the targets of the Mount (and Remount) or Unmount steps that were done, or were done already. Staged images
/// are left out, because they are not mounts of sharefs.yaml.
std::set<std::string> mounted_by(const plan::Plan& plan, const plan::Report& report);
std::set<std::string> unmounted_by(const plan::Plan& plan, const plan::Report& report);
/// Counts the staged images whose steps failed.
std::size_t count_failed_images(const plan::Plan& plan, const plan::Report& report);

/// Returns {name, source, target, state, mounted, latency_us, size_bytes, used_bytes, options, differences, detail}.
Json to_json(const mounts::MountState& state);
/// Puts the states into the JSON document as `mounts`.
void add_states(Context& context, const std::vector<mounts::MountState>& states);

// ---- mounting and unmounting, each as one plan, which a command executes or adds to its own ----

struct MountScope {
  std::chrono::milliseconds timeout{5'000}; ///< for the servers' answers
  bool remount = false;                     ///< see mounts::plan_mounts
  bool boot = true;                         ///< also set up the mounts at boot
  bool caches = true;                       ///< also the directories of `caches.local`, and staged images
  [[nodiscard]] std::chrono::milliseconds path_deadline() const;
};
struct MountWork {
  mounts::Observation seen;
  mounts::MountPlan plan; ///< with the steps for boot, caches and images
};
/// Plans the directories of `caches.local`, and in them those in which root stages.
plan::Plan plan_cache_directories(sys::System& system, const config::Config& config);
/// Plans to mount `wanted`, as `mount` does it; asks their servers first.
Result<MountWork> plan_mount_work(Context& context, const config::Config& config,
                                  const std::vector<mounts::MountPoint>& wanted, const MountScope& scope);
/// Returns to_json() of each mount, with its `outcome`; `good` are the targets that are mounted now.
Json mounts_json(const MountWork& work, const std::set<std::string>& good, bool applied);

struct UnmountWork {
  sys::MountTable table;
  mounts::BootFacts boot;
  mounts::MountPlan plan; ///< with the steps that remove them from boot
};
/// Which entries of sharefs that mount something at boot are removed.
enum class Forget {
  nothing,
  named, ///< those of the given mounts
  all    ///< also those that an earlier sharefs.yaml has left; what they mount is unmounted, too
};
/// Plans to unmount `points`, as `umount` does it.
Result<UnmountWork> plan_unmount_work(Context& context, std::vector<mounts::MountPoint> points,
                                      const mounts::UnmountOptions& options, Forget forget);
/// Reports the mounts that were busy and the processes that hold them (SF229).
void report_busy(Context& context, const sys::MountTable& table, const plan::Plan& plan, const plan::Report& report);

} // namespace sharefs::cli
