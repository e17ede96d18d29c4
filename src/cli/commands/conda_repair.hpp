#pragma once
// `conda verify --repair` where nothing may change: in a generation of a shared environment.
#include "cli/commands/conda_support.hpp"
#include "cli/execute.hpp"
#include "conda/running.hpp"

namespace sharefs::cli {

/// The generation that the directory at `path` is, whatever links lead to it; nullopt: none, or it has no answer.
std::optional<conda::GenerationPath> generation_at(Context& context, const std::string& path);

/// What mends the present generation, of which `seen` was read, becomes the next one: under the lease, hard links where
/// nothing changes. `command`: of its record. An empty plan: there is nothing that can be repaired.
Result<Executed> repair_generation(Context& context, const StoreName& where, const conda::EnvironmentState& seen,
                                   const std::string& command);

/// What is still found once that is done.
Diagnoses diagnose_unrepaired_generation(const conda::EnvironmentState& seen);

} // namespace sharefs::cli
