#pragma once
// The guard in shared environments: the files that `caches.guard: always` adds to a generation.
#include "cli/context.hpp"
#include "conda/guard_wheel.hpp"

namespace sharefs::cli {

/// Returns the files of the guard's wheel, which is installed with sharefs; none unless `caches.guard` is `always`. If
/// they cannot be read the command gives a warning and continues without them.
conda::GuardFiles guard_files(Context& context);

} // namespace sharefs::cli
