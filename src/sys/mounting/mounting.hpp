#pragma once
// Makes and ends mounts on the running machine. Both work on an open directory, not on its path, because a mount point
// in a user's directory can be replaced between two system calls.
#include "base/result.hpp"
#include "sys/mounting/mount_call.hpp"

namespace sharefs::sys {

/// See System::mount and System::unmount.
Result<void> make_mount(const MountCall& call);
Result<void> end_mount(const UnmountCall& call);

/// Returns the Error of a mount whose child has failed with `error`. If it was ended by Ctrl-C or its deadline, the
/// message names what was waited for.
Error child_error(const MountCall& call, Error error);

/// Returns the Error for the message of mount.nfs on standard error, with its error code and a hint.
Error mount_error(const MountCall& call, const std::string& stderr_text);

} // namespace sharefs::sys
