#pragma once
// Mount profiles: named sets of options; and decide(), which sets all options of a mount point.
#include "base/result.hpp"
#include "mounts/mount_point.hpp"
#include "sys/mounts/mount_table.hpp"
#include "sys/nfs/nfs_probe.hpp"

#include <string>
#include <vector>

namespace sharefs::mounts {

/// Sets the options of a point: those of the profile, then pinned options, then the point's own, each overriding by
/// key. Version and transport are pinned to those that the server offers. Without an answer (nullptr), or if NFS did
/// not answer, nothing is pinned. Error `config` with a "did you mean" hint for an unknown profile.
Result<MountPoint> decide(MountPoint point, const sys::NfsProbe* server);

/// Returns the options that a point needs besides profile `safe` to be mounted as `mount` is now, so that nothing
/// changes when sharefs.yaml takes the mount over.
std::vector<std::string> options_beside_safe(const sys::MountEntry& mount);
/// Returns the same for an entry that is not mounted now, by its options in fstab or another boot file: each option
/// that is not for fstab alone, and the defaults of mount(8).
std::vector<std::string> options_beside_safe(const std::string& boot_options);

/// Returns what a person should know before the mount is made: the consequences of its options, and whether its version
/// is not pinned.
std::vector<std::string> mount_notes(const MountPoint& point);

} // namespace sharefs::mounts
