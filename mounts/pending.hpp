#pragma once
// mount.nfs processes that are still at work: `bg` leaves them behind, and nothing in the mount table shows it.
#include "sys/system.hpp"

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sharefs::mounts {

struct PendingMount {
  int pid = 0;
  std::string source, target, options;
  friend bool operator==(const PendingMount&, const PendingMount&) = default;
};

/// A command of mount(8) or mount.nfs(8) by its words, the program's first.
struct MountCommand {
  std::string source, target, options;
  std::string type; ///< "" where none is given
};
/// Options may stand anywhere; the first two words that are none are the source and the target. nullopt if there are no
/// two.
std::optional<MountCommand> read_mount_command(std::span<const std::string> words);

/// Every mount.nfs and mount.nfs4 of this mount namespace. Reads /proc/PID/comm of all and cmdline of these only:
/// reading cmdline of a process that hangs can hang. What cannot be read is left out.
std::vector<PendingMount> find_pending(sys::System& system, std::chrono::milliseconds deadline);

} // namespace sharefs::mounts
