#pragma once
// Private to mounting: attaching of a mount to a directory, and mounts that need no mount.nfs. These functions run in
// the child of make_mount() or end_mount().
#include "sys/mounting/mount_call.hpp"
#include "sys/process/fd.hpp"

#include "base/result.hpp"

namespace sharefs::sys {

/// Opens a directory, without following symbolic links.
Result<Fd> open_directory(const std::string& path);
/// Becomes the user of the option `k_reached_as`, for good, but keeps the capabilities that mounting needs. Does
/// nothing without that option.
Result<void> become_reaching(const std::string& options);
/// Attaches `tree`, a mount that is not attached yet, to the open directory `target`.
Result<void> attach(const Fd& tree, const Fd& target, const MountCall& call);

Result<void> remount_in_child(const MountCall& call);
Result<void> bind_in_child(const MountCall& call);
Result<void> image_in_child(const MountCall& call);
/// Mounts as this process's user.
Result<void> user_image_in_child(const MountCall& call);

} // namespace sharefs::sys
