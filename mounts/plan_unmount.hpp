#pragma once
// What has to be done so that mounts are gone.
#include "base/diagnosis.hpp"
#include "mounts/mount_point.hpp"
#include "mounts/pending.hpp"
#include "plan/plan.hpp"
#include "sys/mounts/mount_table.hpp"

#include <chrono>
#include <string>
#include <vector>

namespace sharefs::mounts {

struct UnmountOptions {
  bool force = false, lazy = false;
  std::chrono::milliseconds deadline{10'000};
  std::set<std::string> go_first = {}; ///< targets that somebody else unmounts before these
};

/// A plan for mounts, and what it means for each of them, by target.
struct MountPlan {
  plan::Plan plan;
  Diagnoses diagnoses;
  std::vector<std::string> right;    ///< it needs nothing: it is there, or gone, as was asked for
  std::vector<std::string> planned;  ///< it is mounted, remounted or unmounted by the plan
  std::vector<std::string> given_up; ///< a recovery only unmounts it
  std::vector<std::string> blocked;  ///< it was left alone; a diagnosis says why
};

/// Refuses what is not NFS, and a mount with other mounts below it that are not unmounted too (unless lazy). Mounts
/// that are stacked at one target go one after the other.
MountPlan plan_unmounts(const sys::MountTable& table, const std::vector<MountPoint>& targets,
                        const std::vector<PendingMount>& pending, const UnmountOptions& options);

/// The step that unmounts `mount`, with what undo needs to mount it again.
plan::Unmount unmount_action(const sys::MountEntry& mount, const UnmountOptions& options);

} // namespace sharefs::mounts
