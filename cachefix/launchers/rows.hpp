#pragma once
// The parts of the table of launchers. launchers() joins them.
#include "cachefix/launchers/launcher.hpp"

namespace sharefs::cachefix {

std::span<const Launcher> prefix_launchers();      ///< env, nice, timeout, ..., python, bash
std::span<const Launcher> training_launchers();    ///< torchrun, deepspeed, accelerate, horovodrun, ...
std::span<const Launcher> cluster_launchers();     ///< mpirun, srun, sbatch
std::span<const Launcher> environment_launchers(); ///< conda, docker, apptainer, ...
std::span<const Launcher> project_launchers();     ///< uv, poetry, pdm, hatch, pixi, ...
std::span<const Launcher> tool_launchers();        ///< nsys, ncu, debugpy, coverage, ...

} // namespace sharefs::cachefix
