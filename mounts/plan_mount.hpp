#pragma once
// What has to be done so that every wanted mount is there.
#include "mounts/plan_unmount.hpp"
#include "mounts/probe.hpp"
#include "plan/plan.hpp"

#include <chrono>
#include <set>
#include <string>
#include <vector>

namespace sharefs::mounts {

/// `wanted` are the requests of the observation, made with servers, want_access and targets. Mounts that are right or
/// wrong are left alone, missing ones get their directories and a mount step when their server would serve them.
/// One group per mount (they run in parallel); mounts that lie one in the other share a group, the outer one first.
/// `remount`: mounts whose faults are of rights only (can_remount) get them by a Remount.
MountPlan plan_mounts(const Observation& seen, const std::vector<MountPoint>& wanted,
                      std::chrono::milliseconds deadline = std::chrono::seconds(30), bool remount = false);

/// The mounts that were just made, as they are: what the kernel made of their options, and whether they answer.
Diagnoses diagnose_mounted(sys::System& system, const Observation& before, const std::set<std::string>& mounted,
                           std::chrono::milliseconds deadline);

/// The step that mounts a point with the options that it has.
void add_mount_step(plan::Plan& plan, const std::string& group, const MountPoint& point,
                    std::chrono::milliseconds deadline);

} // namespace sharefs::mounts
