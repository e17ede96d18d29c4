#pragma once
// What a client needs beside its mounts: the program that makes them, the daemon of their locks, and a server that
// would let it mount again what is mounted now.
#include "mounts/diagnose.hpp"
#include "mounts/probe.hpp"

#include <chrono>
#include <string>
#include <vector>

namespace sharefs::mounts {

/// What was not asked for counts as there.
struct ClientFacts {
  bool mount_program = true; ///< mount.nfs; asked for if a wanted mount is missing
  bool statd = true; ///< rpc.statd, in this network namespace; asked for if a mount of version 3 needs its locks
  friend bool operator==(const ClientFacts&, const ClientFacts&) = default;
};

/// Looks at what the mounts of `seen` need. Of processes only root knows.
ClientFacts client_facts(sys::System& system, const Observation& seen, std::chrono::milliseconds deadline);

/// SF245, SF246; and of wanted mounts that are well, as warnings, what preflight() would forbid: after a reboot they
/// would be missing.
Diagnoses diagnose_client(const Observation& seen, const ClientFacts& facts);

/// All that is wrong with what this host mounts: the mounts that are there, those that are missing and why they cannot
/// be made, what the client needs for them, and which of `users` a server refuses.
Diagnoses diagnose_host(sys::System& system, const Observation& seen, const std::vector<std::string>& users,
                        std::chrono::milliseconds deadline);

} // namespace sharefs::mounts
