#pragma once
// Making and ending mounts on the live machine, both judged by the mount table.
#include "sys/mounts/mount_table.hpp"
#include "sys/system.hpp"

namespace sharefs::sys {

/// /proc/self/mountinfo, read until two reads are equal (before kernel 5.8 one read may be inconsistent).
Result<MountTable> read_mount_table();

/// See System::mount and System::unmount.
Result<void> make_mount(const MountCall& call);
Result<void> end_mount(const UnmountCall& call);

/// The Error for what mount.nfs wrote to stderr: its first line without "mount.nfs: ", with kind and cure.
Error mount_error(const MountCall& call, const std::string& stderr_text);
/// "ro,nosuid,size=1m" -> flags of mount(2), and the rest, which is for the file system.
struct MountFlags {
  unsigned long flags = 0;
  std::string rest;
};
MountFlags split_mount_options(const std::string& options);

} // namespace sharefs::sys
