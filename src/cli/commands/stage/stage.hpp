#pragma once
#include "cli/context.hpp"

#include <set>

namespace sharefs::cli {

/// Where this host's copies lie: of environments, and (`stage.at`) of directories.
std::set<std::string> stage_directories(const config::Config& config);
std::string staged_paths_directory(const config::Config& config);

} // namespace sharefs::cli
