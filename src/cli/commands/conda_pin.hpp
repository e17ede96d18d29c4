#pragma once
// A command that was started by `conda run` stays in its generation, also behind `sharefs run`.
#include "cli/context.hpp"
#include "conda/running.hpp"

namespace sharefs::cli {

/// What says to later commands which generation CONDA_PREFIX is.
void set_pin(std::vector<std::string>& environment, const conda::GenerationPath& generation);
/// See conda::pinned(); the command as it is where the environment names no generation.
Argv pinned_command(Context& context, Argv command, const std::vector<std::string>& environment);

} // namespace sharefs::cli
