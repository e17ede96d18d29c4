#pragma once
// Requests to make or to end a mount. They are also actions of a plan.
#include "sys/nfs/nfs_probe.hpp"

#include <chrono>
#include <string>

namespace sharefs::sys {

/// `fs_type` of a bind mount of a local directory (mount --bind); `source` is its path.
inline constexpr const char* k_bind = "bind";

/// `fs_type` of an existing mount whose restrictions are changed to exactly those of `options`.
inline constexpr const char* k_remount = "remount";

/// `fs_type` of an image file that only root can write; `source` is its path. It is mounted read-only, by a loop device
/// that is released together with the mount.
inline constexpr const char* k_image = "squashfs";

// On a share root of this host may have no rights: the server may map root to nobody (root_squash), and an image may
// belong to another user.

/// `fs_type` of an image file that a user mounts without root by squashfuse(1). Only this user can see it.
inline constexpr const char* k_user_image = "fuse.squashfuse";

/// An option of k_image, followed by a UID: the image lies on a share and may belong to this user. It is opened as this
/// user, because the server may refuse root.
inline constexpr const char* k_image_owner = "owner=";

/// An option of k_bind, followed by a UID: the target on a share is reached as this user.
inline constexpr const char* k_reached_as = "as=";

/// Returns those of the comma-separated options that restrict a mount, always in this order: "ro,nosuid,nodev,noexec".
std::string restrictions_in(const std::string& options);

/// Returns the TCP ports that mount.nfs uses with these options (`port=`, `mountport=`).
NfsPorts ports_in(const std::string& options);
/// Returns the options by which `sharefs probe` asks these ports, with blanks; "" for the usual ones.
std::string port_words(const NfsPorts& ports);
/// Returns the words of `sharefs probe` that ask a server, or HOST:/path of it, by these ports.
std::string probe_command(const NfsPorts& ports, const std::string& server);

/// A mount that a child makes before a deadline: NFS by `mount.nfs`, a k_bind or a k_image, whose options are ro,
/// nosuid, nodev and noexec, or a k_remount.
struct MountCall {
  std::string source, target, fs_type, options;
  std::chrono::milliseconds deadline{30'000};
  std::string server = {}; ///< the server's name in messages; empty: that of `source`. It is not in the journal
  friend bool operator==(const MountCall&, const MountCall&) = default;
};

/// A mount that a child ends by umount2(2) before a deadline. Success is judged by mountinfo, not by the child's exit
/// code: the last v4.2 mount of a dead server leaves the table while umount2 itself blocks for a minute.
struct UnmountCall {
  std::string target;
  bool force = false;                   ///< MNT_FORCE: fails pending requests with EIO
  bool lazy = false;                    ///< MNT_DETACH
  std::string source, fs_type, options; ///< of the present mount, to detect a conflict and to mount it again on undo
  std::chrono::milliseconds deadline{10'000};
  friend bool operator==(const UnmountCall&, const UnmountCall&) = default;
};

} // namespace sharefs::sys
