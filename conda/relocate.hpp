#pragma once
// The checks of `conda relocate` before all files of the environment are read: it lies where its files are to say, and
// may be changed there.
#include "conda/environment.hpp"

namespace sharefs::conda {

/// Errors: `unsupported`: it lies elsewhere, or is a generation, in which nothing changes; `not_found`; `usage`.
Result<void> check_relocation(sys::System& system, const EnvironmentRequest& request);
/// What relocating cannot mend: an environment with errors of these is left as it is.
Diagnoses diagnose_relocation(const EnvironmentState& state);

} // namespace sharefs::conda
