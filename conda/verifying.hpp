#pragma once
// The flow of `conda verify` for a generation of a shared environment: what is known from the last time, and its
// images.
#include "base/diagnosis.hpp"
#include "conda/change.hpp"
#include "conda/running.hpp"

namespace sharefs::conda {

/// By what the files of a generation are known again: by names, modes, sizes, times and inodes. Empty: they could not
/// all be looked at.
std::string fingerprint_of(sys::System& system, const GenerationPath& generation, const plan::Say& say);
/// When the generation was found good as it is now, by the fingerprint, seconds since 1970; 0: that is not known.
std::int64_t unchanged_since(sys::System& system, const SharedEnvironment& environment, const Generation& record,
                             const std::string& fingerprint);

/// What was found of the images of a generation: of the one on the share, and of the one that root has staged here.
struct CheckedImages {
  std::vector<std::string> good; ///< paths
  Diagnoses found;               ///< SF536: another content than noted
};
/// Reads them, one hash for each. `stage`: `conda.stage`.
CheckedImages check_images(sys::System& system, const SharedEnvironment& environment, const Generation& record,
                           const std::string& stage, const plan::Say& say);

} // namespace sharefs::conda
