#pragma once
// Checks what a client needs for its mounts: mount.nfs, the daemon for NFS 3 locks (rpc.statd), and a server that would
// let it mount again what is mounted now.
#include "mounts/diagnose.hpp"
#include "mounts/probe.hpp"

#include <chrono>
#include <string>
#include <vector>

namespace sharefs::mounts {

/// A requirement that was not checked counts as met.
struct ClientFacts {
  bool mount_program = true; ///< mount.nfs is installed; checked if a wanted mount is missing
  bool statd = true; ///< rpc.statd runs in this network namespace; checked by root if a mount of NFS 3 needs its locks
  friend bool operator==(const ClientFacts&, const ClientFacts&) = default;
};

/// Checks what the mounts of `seen` need. rpc.statd is checked by root only, because others may not see its process.
ClientFacts read_client_facts(sys::System& system, const Observation& seen, std::chrono::milliseconds deadline);

/// Returns SF245 and SF246. For wanted mounts that work now it also returns the errors of preflight(), as warnings:
/// after a reboot these mounts would be missing.
Diagnoses diagnose_client(const Observation& seen, const ClientFacts& facts);

/// Returns all that is wrong with the mounts of this host: faults of the present mounts, missing mounts and why they
/// cannot be made, what the client lacks, and which of `users` a server refuses.
Diagnoses diagnose_host(sys::System& system, const Observation& seen, const std::vector<std::string>& users,
                        std::chrono::milliseconds deadline);

} // namespace sharefs::mounts
