#pragma once
// Mount profiles: named sets of options, and how a mount point gets every option decided.
#include "base/result.hpp"
#include "mounts/mount_point.hpp"
#include "sys/mounts/mount_table.hpp"
#include "sys/nfs/nfs_probe.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace sharefs::mounts {

/// Profile, then pinned options, then the point's own, each overriding by key. Version and transport are pinned to what
/// the server answers; to nothing without an answer (nullptr) or one that does not reach NFS. `config` error with a
/// "did you mean" hint for an unknown profile.
Result<MountPoint> decide(MountPoint point, const sys::NfsProbe* server);

/// The options that a point needs beside profile `safe` to be mounted as `mount` is now: no right or behaviour changes
/// when sharefs.yaml takes it over.
std::vector<std::string> options_beside_safe(const sys::MountEntry& mount);
/// The same for what is not mounted now, by the options of its line in fstab or its like: each of them that is not for
/// fstab alone, and what mount(8) means where they are silent.
std::vector<std::string> options_beside_safe(const std::string& boot_options);

/// What a person should know before the mount is made: the consequences of its options, and the unpinned version.
std::vector<std::string> notes_on(const MountPoint& point);

} // namespace sharefs::mounts
