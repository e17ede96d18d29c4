#pragma once
// Finds mount.nfs processes that are still trying to mount: with `bg` they go on in the background, and the mount table
// does not show them.
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
  std::chrono::seconds age{0}; ///< 0: not known
  /// True if it is not expected to end soon: it works in the background (`bg`), or takes long already.
  [[nodiscard]] bool keeps_trying() const;
  friend bool operator==(const PendingMount&, const PendingMount&) = default;
};

/// Returns what to do about it, as a hint: to wait, or else to end it.
std::string cure_of(const PendingMount& pending);

/// The arguments of a mount(8) or mount.nfs(8) command.
struct MountCommand {
  std::string source, target, options;
  std::string type; ///< "" where none is given
};
/// Reads the words of a command, the program first. Options may stand anywhere; the first two words that are no options
/// are source and target. nullopt if there are no two such words.
std::optional<MountCommand> read_mount_command(std::span<const std::string> words);

/// Finds every mount.nfs and mount.nfs4 process of this mount namespace. It reads cmdline only of these processes,
/// because reading cmdline of a process that hangs can hang. Processes that cannot be read are left out.
std::vector<PendingMount> find_pending(sys::System& system, std::chrono::milliseconds deadline);

} // namespace sharefs::mounts
