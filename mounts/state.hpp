#pragma once
// The state of one mount, as a value.
#include "mounts/compare.hpp"
#include "mounts/mount_point.hpp"
#include "mounts/pending.hpp"
#include "sys/configured_mounts.hpp"
#include "sys/fs/entry.hpp"
#include "sys/nfs/nfs_probe.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace sharefs::mounts {

enum class Health {
  healthy,
  slow,          ///< the server answers, but later than k_slow_after
  full,          ///< no space is left for users
  hung,          ///< no answer within the deadline, or a soft mount that no longer waits
  stale,         ///< ESTALE: the server no longer knows the file handle
  denied,        ///< EACCES or EPERM on the mount point itself
  read_only,     ///< rw was asked for, and it is mounted ro
  missing,       ///< nothing is mounted there
  wrong_source,  ///< something else is mounted there
  backgrounding, ///< a mount.nfs process keeps trying in the background
  autofs_idle,   ///< an automount point without a mount; reading it would mount
  unknown,       ///< it was not checked: no process, memory or descriptor was left, or it was not asked
  failed,        ///< another error
  here,          ///< this host is the server, and uses its own directory
  looped,        ///< this host's own directory, mounted from itself over NFS
};
const char* to_string(Health health); ///< "healthy", "read-only", "wrong source", "autofs-idle"
bool is_good(Health health);          ///< true for healthy, slow, full, autofs_idle and here

inline constexpr std::chrono::milliseconds k_slow_after{500};

struct MountState {
  MountPoint point;
  bool wanted = true;        ///< false: it is only in the mount table
  Settings own_options = {}; ///< of a wanted mount: those that a person asked for, to which decide() adds others
  Health health = Health::missing;
  std::optional<sys::MountEntry> mount; ///< the visible mount at the target
  std::size_t stacked = 0;              ///< number of further NFS mounts at the same target, hidden by this one
  std::vector<Difference> differences;
  std::optional<sys::Entry> answer; ///< answer of the mount point, even if nothing is mounted there
  std::optional<PendingMount> pending;
  std::string detail; ///< text of a failure
  /// The directory of this host above the mount point through which only root gets; "": there is none.
  std::string closed_above;
  /// The disk of this host's own directory, which is to be bound to the mount point, if that disk is not mounted.
  std::optional<sys::ConfiguredMount> absent_disk;
  std::string moved_to; ///< the new address of the server's name, if the mount uses another one
  /// How often another host with the same NFS 4 client name has taken this host's place at the server; 0: never.
  std::uint64_t taken_over = 0;

  [[nodiscard]] bool mounted() const { return mount.has_value() && sys::is_nfs(*mount); }
  [[nodiscard]] bool right() const; ///< is_good, not full, no faults, nothing stacked, not taken over
  /// Returns the space of the file system; nullptr if the server did not answer.
  [[nodiscard]] const sys::Space* space() const;
};

/// Sets answer, health and detail by the answer of the mount point. For a soft mount an I/O error means that its server
/// is away.
void set_answer(MountState& state, sys::Entry answer);

/// Makes a point for a mount that is only in the mount table, with the options that mount the same again.
MountPoint point_of(const sys::MountEntry& mount);
/// Makes the same without the options but `port=`, because finding these is slow.
MountPoint point_without_options(const sys::MountEntry& mount);

/// Works out the state of a mount, without `stacked`. `answer` is that of the target if it was asked; `server` may be
/// nullptr.
MountState classify(MountPoint point, bool wanted, const sys::MountTable& table, std::optional<sys::Entry> answer,
                    const std::vector<PendingMount>& pending, const sys::NfsProbe* server);

} // namespace sharefs::mounts
