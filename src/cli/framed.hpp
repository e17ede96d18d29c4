#pragma once
#include "cli/context.hpp"

#include <optional>

namespace sharefs::cli {

/// Runs `sharefs --frame PROTOCOL:NAME[:SECONDS] COMMAND`, as another machine's sharefs calls this one
/// (fleet/frames.hpp). A first frame names version and protocol, then frames with the JSON document of the command
/// follow. With another protocol nothing is run. After SECONDS timeout(1) ends the command. Returns the exit code of
/// the command; nullopt: the command line has no --frame.
std::optional<int> run_framed(const Argv& argv, Host& host);

} // namespace sharefs::cli
