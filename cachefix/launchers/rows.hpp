#pragma once
// The parts of the table of launchers. launchers() joins them.
#include "cachefix/launchers/launcher.hpp"

namespace sharefs::cachefix {

std::span<const Launcher> prefix_launchers();      ///< env, nice, timeout, ..., python, bash, nsys, debugpy, ...
std::span<const Launcher> training_launchers();    ///< torchrun, deepspeed, accelerate, ..., mpirun, srun, sbatch
std::span<const Launcher> environment_launchers(); ///< conda, docker, apptainer, uv, poetry, pdm, hatch, pixi, ...

} // namespace sharefs::cachefix
