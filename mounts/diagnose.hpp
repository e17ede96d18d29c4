#pragma once
// The messages about mounts, with cause and cure; mount, recover and status share them.
#include "base/diagnosis.hpp"
#include "mounts/probe.hpp"
#include "mounts/state.hpp"

#include <chrono>
#include <string>
#include <vector>

namespace sharefs::mounts {

/// Returns what is wrong with a mount (SF208 to SF220, SF230 to SF233, SF247); empty if it is right. `server` is the
/// probe of its server, nullptr if there was none.
Diagnoses diagnose(const MountState& state, const sys::NfsProbe* server);
/// Returns what is wrong with all mounts of an observation, in their order. All mounts of one server that hang get one
/// diagnosis together.
Diagnoses diagnose(const Observation& seen);

/// Returns `hint`, and for a mount that is not in sharefs.yaml the other way out: to unmount it.
std::string or_unmount(const MountState& state, const std::string& hint);

/// SF230 and SF216: statfs(2), or a write that failed, has shown it.
Diagnosis full(const MountPoint& point, const std::string& detail);
Diagnosis read_only(const MountPoint& point, const std::string& detail);

/// Returns why `point` cannot be mounted now, by the answers of its server (SF201 to SF204). Errors forbid the mount,
/// warnings do not. Empty if nothing is wrong or the server was not probed.
Diagnoses preflight(const MountPoint& point, const sys::NfsProbe* server);

/// Checks what this client needs for the mounts of `seen`: mount.nfs, if a wanted mount is missing (SF246), and
/// rpc.statd, if a mount of NFS 3 needs it for its locks (SF245). Only root checks the latter, because others may not
/// see its process. For wanted mounts that work now it also returns the errors of preflight(), as warnings: after a
/// reboot these mounts would be missing.
Diagnoses diagnose_client(sys::System& system, const Observation& seen, std::chrono::milliseconds deadline);

/// Returns all that is wrong with the mounts of this host: faults of the present mounts, missing mounts and why they
/// cannot be made, what the client lacks, and which of `users` a server refuses.
Diagnoses diagnose_host(sys::System& system, const Observation& seen, const std::vector<std::string>& users,
                        std::chrono::milliseconds deadline);

} // namespace sharefs::mounts
