#pragma once
// Mounting and unmounting on this host, each as one plan, which a command executes or adds to its own.
#include "cli/commands/mount/support.hpp"
#include "mounts/plan_mount.hpp"

namespace sharefs::cli {

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
/// Plans to mount `wanted`, as `mount` does it; asks their servers first.
Result<MountWork> plan_mount_work(Context& context, const config::Config& config,
                                  const std::vector<mounts::MountPoint>& wanted, const MountScope& scope);
/// Returns to_json() of each mount, with its `outcome`; `good` are the targets that are mounted now.
nlohmann::ordered_json mounts_json(const MountWork& work, const std::set<std::string>& good, bool applied);

struct UnmountWork {
  sys::MountTable table;
  mounts::BootFacts boot;
  mounts::MountPlan plan; ///< with the steps that remove them from boot
};
/// Plans to unmount `points`, as `umount` does it. `forget`: also remove what sharefs wrote to mount them at boot.
Result<UnmountWork> plan_unmount_work(Context& context, std::vector<mounts::MountPoint> points,
                                      const mounts::UnmountOptions& options, bool forget);
/// Reports the mounts that were busy and the processes that hold them (SF229).
void report_busy(Context& context, const sys::MountTable& table, const plan::Plan& plan, const plan::Report& report);

} // namespace sharefs::cli
