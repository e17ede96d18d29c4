#pragma once
// mount.nfs processes that are still at work: `bg` leaves them behind, and nothing in the mount table shows it.
#include "sys/system.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace sharefs::mounts {

struct PendingMount {
  int pid = 0;
  std::string source, target, options;
  friend bool operator==(const PendingMount&, const PendingMount&) = default;
};

/// Text of /proc/PID/cmdline of a mount.nfs -> what it mounts: the first two words that are no options, and the word
/// behind -o. nullopt if there are no two words.
std::optional<PendingMount> parse_mount_command(int pid, const std::string& command_line);

/// Every mount.nfs and mount.nfs4 of this mount namespace. Reads /proc/PID/comm of all and cmdline of these only:
/// reading cmdline of a process that hangs can hang. What cannot be read is left out.
std::vector<PendingMount> find_pending(sys::System& system, std::chrono::milliseconds deadline);

} // namespace sharefs::mounts
