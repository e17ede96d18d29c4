#pragma once
#include "cli/context.hpp"

#include <set>

namespace sharefs::cli {

/// Where this host's copies may lie that this user reads: of environments, and of directories. The configuration has
/// been read.
std::set<std::string> stage_directories(Context& context);

} // namespace sharefs::cli
