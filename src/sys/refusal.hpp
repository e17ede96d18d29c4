#pragma once
// Explains why an NFS server denies a user access although the user's groups on this host would allow it.
#include "sys/system.hpp"

#include <optional>
#include <string>

namespace sharefs::sys {

struct Refusal {
  std::string message; ///< "carol is in `ml` here, and storage1 does not let carol use /data/share as a member"
  std::string hint;    ///< what to do on the server
};

/// Checks the directories from the mount point down to `path` as this user. nullopt: the server allows access, the
/// modes forbid it anyway, the path is not on NFS with AUTH_SYS, or this process may not act as that user.
std::optional<Refusal> explain_refusal(System& system, const std::string& path, const User& user);

} // namespace sharefs::sys
