#pragma once
// The state of one mount, as a value.
#include "mounts/compare.hpp"
#include "mounts/mount_point.hpp"
#include "mounts/pending.hpp"
#include "sys/fs/path_probe.hpp"
#include "sys/mounts/mount_table.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace sharefs::mounts {

enum class Health {
  healthy,
  slow,          ///< the server answers, but late
  hung,          ///< no answer within the deadline
  stale,         ///< ESTALE: the server no longer knows the file handle
  denied,        ///< EACCES or EPERM on the mount point itself
  read_only,     ///< asked for rw, mounted ro
  missing,       ///< nothing is mounted there
  wrong_source,  ///< something else is mounted there
  backgrounding, ///< a mount.nfs process keeps trying
  autofs_idle,   ///< an automounter waits there; looking would mount
  failed,        ///< another error
};
const char* to_string(Health health); ///< "healthy", "read-only", "wrong source", "autofs-idle"
bool is_good(Health health);          ///< healthy, slow or autofs_idle

inline constexpr std::chrono::milliseconds k_slow_after{500};

struct MountState {
  MountPoint point;
  bool wanted = true; ///< false: only the mount table knows it
  Health health = Health::missing;
  std::optional<sys::MountEntry> mount; ///< the visible one at the target
  std::size_t stacked = 0;              ///< further NFS mounts at the same target, hidden below it
  std::vector<Difference> differences;
  std::optional<sys::PathProbe> probe;
  std::optional<PendingMount> pending;
  std::string detail; ///< of a failure

  [[nodiscard]] bool mounted() const { return mount.has_value() && sys::is_nfs(*mount); }
  [[nodiscard]] bool right() const; ///< is_good, with no option that differs and nothing stacked
};

/// The health that a probe of the mount point shows.
Health health_of(const sys::PathProbe& probe);

/// A point for a mount that only the table knows.
MountPoint point_of(const sys::MountEntry& mount);

/// What was seen -> state. `probe` is that of the target if it was probed; `address` as same_source().
MountState classify(const MountPoint& point, bool wanted, const sys::MountTable& table, const sys::PathProbe* probe,
                    const std::vector<PendingMount>& pending, const std::string& address);

} // namespace sharefs::mounts
