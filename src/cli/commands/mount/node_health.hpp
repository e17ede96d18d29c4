#pragma once
// sharefs status --node-health: what a scheduler asks before it gives a node work.
#include "cli/commands/mount/support.hpp"

namespace sharefs::cli {

/// One line of at most k_health_bytes on stdout, and exit code 0 (well), 1 (not well) or 2 (not known), within
/// --deadline.
Result<int> run_node_health(Context& context, const Arguments& arguments);

} // namespace sharefs::cli
