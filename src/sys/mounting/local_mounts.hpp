#pragma once
// Private to mounts: what a mount is attached to, and the mounts that need no mount.nfs. In the child of make_mount() or
// end_mount().
#include "sys/mounting/mount_call.hpp"
#include "sys/process/fd.hpp"

#include "base/result.hpp"

namespace sharefs::sys {

/// A directory that is reached without symbolic links.
Result<Fd> open_directory(const std::string& path);
/// The user whom an option `k_reached_as` names, for good, but for what mounting needs; nothing where it names none.
Result<void> become_reaching(const std::string& options);
/// On the directory that was checked. `tree` is a mount that lies nowhere yet.
Result<void> attach(const Fd& tree, const Fd& target, const MountCall& call);

Result<void> remount_in_child(const MountCall& call);
Result<void> bind_in_child(const MountCall& call);
Result<void> image_in_child(const MountCall& call);
/// As this process's user.
Result<void> user_image_in_child(const MountCall& call);

} // namespace sharefs::sys
