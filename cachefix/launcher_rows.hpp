#pragma once
// The parts of the table of launchers. launchers() joins them.
#include "cachefix/launcher.hpp"

namespace sharefs::cachefix {

std::span<const Launcher> prefix_launchers();      ///< env, nice, timeout, ..., python, bash
std::span<const Launcher> training_launchers();    ///< torchrun, deepspeed, accelerate, horovodrun, ...
std::span<const Launcher> cluster_launchers();     ///< mpirun, srun, sbatch
std::span<const Launcher> environment_launchers(); ///< conda, uv, docker, apptainer, ...

} // namespace sharefs::cachefix
