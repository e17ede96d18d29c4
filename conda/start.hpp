#pragma once
// The flow of `conda run` up to the moment when it becomes the command: its use is noted, a staged copy is taken, and
// the scripts of activation are run.
#include "conda/running.hpp"
#include "plan/say.hpp"

namespace sharefs::conda {

/// The environment at `path`, for this process, which notes there that it uses it. Waits for a server that is being
/// started anew. Errors: those of probe_running().
Result<RunningPlace> find_running(sys::System& system, const std::string& path, const plan::Say& say);
/// Takes the copy below `stage` on this host's own disk, if there is a whole one of this generation.
void take_staged(sys::System& system, const std::string& stage, RunningPlace& place);
/// `environment` (NAME=value) once the scripts of activate.d have changed it. What they say goes to `said`. Errors:
/// `timeout`, `failed`.
Result<std::vector<std::string>> run_scripts(sys::System& system, const RunningPlace& place,
                                             std::vector<std::string> environment, std::string& said);

} // namespace sharefs::conda
