#pragma once
// The flow of `conda run` up to the moment when it becomes the command: its use is noted, a staged copy is taken, and
// the scripts of activation are run.
#include "conda/running.hpp"
#include "plan/say.hpp"

#include <functional>

namespace sharefs::conda {

/// `conda.stage` of the environment with this name; empty: no copies are looked for.
using StageOf = std::function<std::string(const std::string& environment)>;

/// The environment at `path`, for this process, or a whole copy of its generation on this host. The process notes
/// beside it that it uses it. Waits for a server that is being started anew. Errors: those of probe_running().
Result<RunningPlace> find_running(sys::System& system, const std::string& path, const StageOf& stage_of,
                                  const plan::Say& say);
/// `environment` (NAME=value) once the scripts of activate.d have changed it. What they say goes to `said`. Errors:
/// `timeout`, `failed`.
Result<std::vector<std::string>> run_scripts(sys::System& system, const RunningPlace& place,
                                             std::vector<std::string> environment, std::string& said);

} // namespace sharefs::conda
