#pragma once
// sharefs status --node-health: the check that a scheduler runs before it gives work to a node.
#include "cli/commands/mount/support.hpp"

namespace sharefs::cli {

/// Prints one line of at most k_health_bytes on stdout. Exit code 0 (well), 1 (not well) or 2 (not known), within
/// --deadline.
Result<int> run_node_health(Context& context, const Arguments& arguments);

} // namespace sharefs::cli
