#pragma once
// The messages about mounts, with cause and cure; mount, recover and status share them.
#include "base/diagnosis.hpp"
#include "mounts/probe.hpp"
#include "mounts/state.hpp"

#include <string>

namespace sharefs::mounts {

/// Returns what is wrong with a mount (SF208 to SF220, SF230 to SF233, SF247); empty if it is right. `server` is the
/// probe of its server, nullptr if there was none.
Diagnoses diagnose(const MountState& state, const sys::NfsProbe* server);
/// Returns what is wrong with all mounts of an observation, in their order. All mounts of one server that hang get one
/// diagnosis together.
Diagnoses diagnose(const Observation& seen);

/// SF230 and SF216: statfs(2), or a write that failed, has shown it.
Diagnosis full(const MountPoint& point, const std::string& detail);
Diagnosis read_only(const MountPoint& point, const std::string& detail);

/// Returns why `point` cannot be mounted now, by the answers of its server (SF201 to SF204). Errors forbid the mount,
/// warnings do not. Empty if nothing is wrong or the server was not probed.
Diagnoses preflight(const MountPoint& point, const sys::NfsProbe* server);

} // namespace sharefs::mounts
