#pragma once
#include "cli/context.hpp"

#include <set>

namespace sharefs::cli {

/// Where root's copies lie on this host: of environments, and of directories.
std::set<std::string> stage_directories(const config::Config& config);
/// Of directories: those of root, and of this user. The configuration has been read.
std::set<std::string> staged_paths_directories(Context& context);

} // namespace sharefs::cli
