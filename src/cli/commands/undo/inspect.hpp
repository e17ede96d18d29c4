#pragma once
#include "cli/context.hpp"
#include "plan/journal.hpp"

namespace sharefs::cli {

/// Looks at what the undo of `entry` would meet, which its steps would find out one by one: removes steps on files that
/// are undone already, notes the files that have changed since and stay, and who uses what it removes. Error `conflict`
/// if it would leave a link to nothing.
Result<void> inspect_undo(Context& context, const plan::JournalEntry& entry, plan::Plan& plan);

} // namespace sharefs::cli
