#pragma once
// The state of one mount, as a value.
#include "mounts/compare.hpp"
#include "mounts/mount_point.hpp"
#include "mounts/pending.hpp"
#include "sys/fs/entry.hpp"
#include "sys/mounts/mount_table.hpp"
#include "sys/nfs/nfs_probe.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace sharefs::mounts {

enum class Health {
  healthy,
  slow,          ///< the server answers, but late
  full,          ///< no space is left for users
  hung,          ///< no answer within the deadline, or a soft mount that has given up waiting
  stale,         ///< ESTALE: the server no longer knows the file handle
  denied,        ///< EACCES or EPERM on the mount point itself
  read_only,     ///< asked for rw, mounted ro
  missing,       ///< nothing is mounted there
  wrong_source,  ///< something else is mounted there
  backgrounding, ///< a mount.nfs process keeps trying
  autofs_idle,   ///< an automounter waits there; looking would mount
  unknown,       ///< it could not be checked: no process or descriptor was left for it
  failed,        ///< another error
  here,          ///< this host is the server: its own directory
  looped,        ///< this host's own directory, mounted from itself over NFS
};
const char* to_string(Health health); ///< "healthy", "read-only", "wrong source", "autofs-idle"
bool is_good(Health health);          ///< healthy, slow, full, autofs_idle or here

inline constexpr std::chrono::milliseconds k_slow_after{500};

struct MountState {
  MountPoint point;
  bool wanted = true; ///< false: only the mount table knows it
  Health health = Health::missing;
  std::optional<sys::MountEntry> mount; ///< the visible one at the target
  std::size_t stacked = 0;              ///< further NFS mounts at the same target, hidden below it
  std::vector<Difference> differences;
  std::optional<sys::Entry> answer; ///< of the mount point, also of one on which nothing is mounted
  std::optional<PendingMount> pending;
  std::string detail;   ///< of a failure
  std::string moved_to; ///< the address that the server's name leads to now, which is not the mount's
  /// How often another host with this one's NFS 4 client name took its place at the server; 0: there is none.
  std::uint64_t taken_over = 0;

  [[nodiscard]] bool mounted() const { return mount.has_value() && sys::is_nfs(*mount); }
  [[nodiscard]] bool right() const; ///< is_good, not full, no option differs, nothing stacked, not taken over
  /// Its space, if the server answered.
  [[nodiscard]] const sys::Space* space() const;
};

/// Health and detail by the answer of the mount point. Of a mount that is soft, an I/O error means that its server is
/// away.
void take_answer(MountState& state, sys::Entry answer);

/// A point for a mount that only the table knows, with the options that mount the same again.
MountPoint point_of(const sys::MountEntry& mount);
/// The same without its options, which take long to read.
MountPoint place_of(const sys::MountEntry& mount);

/// What was seen -> state, without `stacked`. `answer` is that of the target if it was asked; `server` may be nullptr.
MountState classify(MountPoint point, bool wanted, const sys::MountTable& table, std::optional<sys::Entry> answer,
                    const std::vector<PendingMount>& pending, const sys::NfsProbe* server);

} // namespace sharefs::mounts
