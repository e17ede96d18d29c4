#pragma once
// The guard for shared environments: what `caches.guard: always` adds to a generation.
#include "cli/context.hpp"
#include "conda/guard_wheel.hpp"

namespace sharefs::cli {

/// The files of the wheel that is installed with sharefs; none unless `caches.guard` is `always`. Where they cannot be
/// read that is a warning, and the command goes on without.
conda::GuardFiles guard_files(Context& context);

} // namespace sharefs::cli
