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

struct UnmountPlan {
  plan::Plan plan;
  Diagnoses diagnoses;
  std::vector<std::string> gone;    ///< targets where nothing is mounted already
  std::vector<std::string> planned; ///< targets that the plan unmounts
  std::vector<std::string> blocked; ///< targets that were left alone; a diagnosis says why
};

/// Refuses what is not NFS, and a mount with other mounts below it that are not unmounted too (unless lazy). Mounts
/// that are stacked at one target go one after the other.
UnmountPlan plan_unmounts(const sys::MountTable& table, const std::vector<MountPoint>& targets,
                          const std::vector<PendingMount>& pending, const UnmountOptions& options);

/// The step that unmounts `mount`, with what undo needs to mount it again.
plan::Unmount unmount_action(const sys::MountEntry& mount, const UnmountOptions& options);

} // namespace sharefs::mounts
