#pragma once
// What mounting and unmounting mean on this host, each as one plan that a command executes or puts into its own.
#include "cli/commands/mount/support.hpp"
#include "mounts/plan_mount.hpp"

namespace sharefs::cli {

struct MountScope {
  std::chrono::milliseconds timeout{5'000}; ///< for the servers' answers
  bool remount = false;                     ///< see mounts::plan_mounts
  bool boot = true;                         ///< also what mounts them at boot
  bool caches = true;                       ///< also the directories of `caches.local`, and staged images
  [[nodiscard]] std::chrono::milliseconds path_deadline() const;
};
struct MountWork {
  mounts::Observation seen;
  mounts::MountPlan plan; ///< with all that belongs to it
};
/// The mounts `wanted`, as `mount` makes them. Asks their servers.
Result<MountWork> plan_mount_work(Context& context, const config::Config& config,
                                  const std::vector<mounts::MountPoint>& wanted, const MountScope& scope);
/// to_json() of each mount, with its `outcome`; `good` are the targets that are there now.
nlohmann::ordered_json mounts_json(const MountWork& work, const std::set<std::string>& good, bool applied);

struct UnmountWork {
  sys::MountTable table;
  mounts::BootFacts boot;
  mounts::MountPlan plan; ///< with what takes them away from boot
};
/// The mounts `points`, as `umount` ends them. `forget`: also what sharefs wrote to mount them at boot.
Result<UnmountWork> plan_unmount_work(Context& context, std::vector<mounts::MountPoint> points,
                                      const mounts::UnmountOptions& options, bool forget);
/// The mounts that were busy, and who holds them (SF229).
void report_busy(Context& context, const sys::MountTable& table, const plan::Plan& plan, const plan::Report& report);

} // namespace sharefs::cli
