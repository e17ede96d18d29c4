#pragma once
// Plans the steps that make every missing mount.
#include "mounts/plan_unmount.hpp"
#include "mounts/probe.hpp"
#include "plan/plan.hpp"

#include <chrono>
#include <set>
#include <string>
#include <vector>

namespace sharefs::mounts {

/// Plans the mounts of `wanted`, for which `seen` was probed with `servers`, `want_access` and `targets`. A mount that
/// is missing and that its server would allow gets its directories and a mount step; a mount that is there is left
/// alone, right or wrong. Each mount has a group, so that they run in parallel; nested mounts share a group, the outer
/// one first. `remount`: if all faults of a mount can be changed in use (can_remount), it gets a Remount step.
MountPlan plan_mounts(const Observation& seen, const std::vector<MountPoint>& wanted,
                      std::chrono::milliseconds deadline = std::chrono::seconds(30), bool remount = false);

/// Checks the mounts that were just made: which options the kernel has set, and whether they answer.
Diagnoses diagnose_mounted(sys::System& system, const Observation& before, const std::set<std::string>& mounted,
                           std::chrono::milliseconds deadline);

/// Adds the step that mounts a point with its present options.
void add_mount_step(plan::Plan& plan, const std::string& group, const MountPoint& point,
                    std::chrono::milliseconds deadline);

} // namespace sharefs::mounts
