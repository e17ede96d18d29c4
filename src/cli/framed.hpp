#pragma once
#include "cli/context.hpp"

#include <optional>

namespace sharefs::cli {

/// `sharefs --frame PROTOCOL:NAME[:SECONDS] COMMAND`, as another machine's sharefs calls this one (fleet/frames.hpp):
/// the command's one JSON document goes out in frames, behind one that says who speaks. With another protocol nothing
/// is run. After so many seconds timeout(1) ends it. nullopt: it was not called so. The exit code is the command's.
std::optional<int> run_framed(const Argv& argv, Host& host);

} // namespace sharefs::cli
