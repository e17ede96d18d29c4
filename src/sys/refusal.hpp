#pragma once
// Why an NFS server says "permission denied" where the groups that this host knows would let a user in.
#include "sys/system.hpp"

#include <optional>
#include <string>

namespace sharefs::sys {

struct Refusal {
  std::string message; ///< "carol is in `ml` here, and storage1 does not let carol use /data/share as a member"
  std::string hint;    ///< what to do on the server
};

/// Looks at the directories from the mount point down to `path` as this user. nullopt: the server lets the user in, the
/// modes would not, the path does not lie on NFS with AUTH_SYS, or whoever asks may not ask for that user.
std::optional<Refusal> explain_refusal(System& system, const std::string& path, const User& user);

} // namespace sharefs::sys
