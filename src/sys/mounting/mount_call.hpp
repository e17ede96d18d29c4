#pragma once
// A mount to make and a mount to end: the actions of a plan, and what the kernel is asked for.
#include <chrono>
#include <string>

namespace sharefs::sys {

/// `fs_type` of a local directory that shall be seen at a second place (mount --bind); `source` is its path.
inline constexpr const char* k_bind = "bind";

/// `fs_type` of a mount in use whose restrictions are to be those of `options`, no more and no fewer.
inline constexpr const char* k_remount = "remount";

/// `fs_type` of an image file, which nobody but root could have written; `source` is its path. Read-only, by a loop
/// device that goes with the mount.
inline constexpr const char* k_image = "squashfs";

/// Of comma-separated options those that restrict what a mount allows, in one order: "ro,nosuid,nodev,noexec".
std::string restrictions_in(const std::string& options);

/// A mount to make in a child with a deadline: NFS, by `mount.nfs`, or a k_bind or a k_image, whose options are ro,
/// nosuid, nodev and noexec; or a k_remount.
struct MountCall {
  std::string source, target, fs_type, options;
  std::chrono::milliseconds deadline{30'000};
  std::string server = {}; ///< as messages call it; empty: as `source`. Not kept in the journal
  friend bool operator==(const MountCall&, const MountCall&) = default;
};

/// umount2(2) in a child with a deadline; judged by mountinfo, never by its exit (the last v4.2 mount of a dead server
/// leaves the table while umount2 itself blocks for a minute).
struct UnmountCall {
  std::string target;
  bool force = false;                   ///< MNT_FORCE: fails pending requests with EIO
  bool lazy = false;                    ///< MNT_DETACH
  std::string source, fs_type, options; ///< of what is there, to mount it again on undo and to find a conflict
  std::chrono::milliseconds deadline{10'000};
  friend bool operator==(const UnmountCall&, const UnmountCall&) = default;
};

} // namespace sharefs::sys
