#pragma once
// Cause and cure, in words: one place for every message about a mount, shared by mount, recover and status.
#include "base/diagnosis.hpp"
#include "mounts/probe.hpp"
#include "mounts/state.hpp"

#include <string>

namespace sharefs::mounts {

/// What is wrong with a mount (SF208 to SF219); empty for one that is right. `server` is its server's probe, nullptr if
/// there was none.
Diagnoses diagnose(const MountState& state, const sys::NfsProbe* server);
/// Of all mounts of an observation, in their order.
Diagnoses diagnose(const Observation& seen);

/// Why `point` cannot be mounted now, by what its server answers (SF201 to SF204). Errors forbid the mount, warnings do
/// not. Empty if all is well or the server was not probed.
Diagnoses preflight(const MountPoint& point, const sys::NfsProbe* server);

/// The name of a share, or its target: what a person gives to sharefs to mean it.
std::string handle(const MountPoint& point);

} // namespace sharefs::mounts
