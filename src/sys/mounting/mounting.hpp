#pragma once
// Making and ending mounts on the live machine. Both work on the directory that was found, not on its name: what lies
// at a mount point in a user's directory can be replaced between two system calls.
#include "base/result.hpp"
#include "sys/mounting/mount_call.hpp"

namespace sharefs::sys {

/// See System::mount and System::unmount.
Result<void> make_mount(const MountCall& call);
Result<void> end_mount(const UnmountCall& call);

/// The Error for what mount.nfs wrote to stderr, with the kind of error and what helps.
Error mount_error(const MountCall& call, const std::string& stderr_text);

} // namespace sharefs::sys
