#pragma once
// The state that an action would find: read by apply before each step, and by rooms that plan by it.
#include "plan/action.hpp"
#include "sys/system.hpp"

namespace sharefs::plan {

struct Looked {
  bool already = false; ///< nothing to do
  Action intent;        ///< the action with what was found filled in (modes, access): what the journal keeps for undo
};

/// Changes nothing. Errors: `conflict` when neither what the action expects nor what it makes is there; else as the
/// machine says.
Result<Looked> look_at(const Action& action, sys::System& system);

/// The image that is mounted there by a loop device, which is all that the mount table names; with ` (deleted)` behind
/// it where its name has gone. Empty: it is no image.
std::string image_behind(sys::System& system, const sys::MountEntry& mount);

} // namespace sharefs::plan
