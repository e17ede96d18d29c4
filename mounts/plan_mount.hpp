#pragma once
// Plans the steps that make missing mounts, and those that unmount.
#include "base/diagnosis.hpp"
#include "mounts/mount_point.hpp"
#include "mounts/pending.hpp"
#include "mounts/probe.hpp"
#include "plan/plan.hpp"
#include "sys/mounts/mount_table.hpp"

#include <chrono>
#include <set>
#include <string>
#include <vector>

namespace sharefs::mounts {

struct UnmountOptions {
  bool force = false, lazy = false;
  std::chrono::milliseconds deadline{10'000};
  std::set<std::string> go_first = {}; ///< targets below these that another step unmounts before
};

/// A plan for mounts, and the targets by what the plan does to them.
struct MountPlan {
  plan::Plan plan;
  Diagnoses diagnoses;
  std::vector<std::string> right;          ///< nothing is to be done: it is mounted, or not, as was asked for
  std::vector<std::string> planned;        ///< the plan mounts, remounts or unmounts it
  std::vector<std::string> only_unmounted; ///< a recovery unmounts it, and does not mount it again
  std::vector<std::string> blocked;        ///< it is left alone; a diagnosis says why
};

/// Plans the wanted mounts of `seen`, which was probed with `servers`, `want_access` and `targets`. A mount that is
/// missing and that its server would allow gets its directories and a mount step; a mount that is there is left alone,
/// right or wrong. Each mount has a group, so that they run in parallel; nested mounts share a group, the outer
/// one first. `remount`: if all faults of a mount can be changed in use (can_remount), it gets a Remount step.
MountPlan plan_mounts(const Observation& seen, bool remount = false);

/// Checks the mounts that were just made: which options the kernel has set, and whether they answer.
Diagnoses diagnose_mounted(sys::System& system, const Observation& before, const std::set<std::string>& mounted,
                           std::chrono::milliseconds deadline);

/// Adds the step that mounts a point with its present options.
void add_mount_step(plan::Plan& plan, const std::string& group, const MountPoint& point);

/// Plans the unmounts of `targets`. Blocked are mounts that sharefs does not make (no NFS mount or bind mount), and,
/// unless `lazy`, mounts with other mounts below them that are not unmounted, too. Mounts that are stacked at one
/// target are unmounted one after the other.
MountPlan plan_unmounts(const sys::MountTable& table, const std::vector<MountPoint>& targets,
                        const std::vector<PendingMount>& pending, const UnmountOptions& options);

/// Returns the action that unmounts `mount`, with the source, type and options that undo needs to mount it again.
plan::Unmount unmount_action(const sys::MountEntry& mount, const UnmountOptions& options);

} // namespace sharefs::mounts
