#pragma once
// Cause and cure, in words: one place for every message about a mount, shared by mount, recover and status.
#include "base/diagnosis.hpp"
#include "mounts/probe.hpp"
#include "mounts/state.hpp"

#include <string>

namespace sharefs::mounts {

/// What is wrong with a mount (SF208 to SF220, SF230 to SF233, SF247); empty for one that is right. `server` is its
/// server's probe, nullptr if there was none.
Diagnoses diagnose(const MountState& state, const sys::NfsProbe* server);
/// Of all mounts of an observation, in their order. Mounts of one server that hang get one diagnosis together.
Diagnoses diagnose(const Observation& seen);

/// SF230 and SF216: known by statfs, or by a write that failed.
Diagnosis full(const MountPoint& point, const std::string& detail);
Diagnosis read_only(const MountPoint& point, const std::string& detail);

/// Why `point` cannot be mounted now, by what its server answers (SF201 to SF204). Errors forbid the mount, warnings do
/// not. Empty if all is well or the server was not probed.
Diagnoses preflight(const MountPoint& point, const sys::NfsProbe* server);

} // namespace sharefs::mounts
