#pragma once
// Checks what an action would find: apply() does this before each step, and rooms do it to make a plan.
#include "plan/action.hpp"
#include "sys/system.hpp"

namespace sharefs::plan {

struct CheckedAction {
  bool already = false; ///< the work of the action is done already
  Action intent;        ///< the action with the mode or access that was found; the journal keeps this for undo
};

/// Checks whether the work of an action is done already. It changes nothing. Errors: `conflict` if neither the state
/// before the action nor the state after it is found; or the error of the system call.
Result<CheckedAction> check_action(const Action& action, sys::System& system);

/// Returns the path of the image file behind a mount; the mount table names only its loop device. The path ends with
/// ` (deleted)` if the file was deleted. Empty: the mount is not an image.
std::string read_image_path(sys::System& system, const sys::MountEntry& mount);

} // namespace sharefs::plan
