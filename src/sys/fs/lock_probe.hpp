#pragma once
// Do file locks mean anything here? On some file systems flock(2) succeeds for every caller.
#include "base/result.hpp"

#include <string>

namespace sharefs::sys {

/// Takes flock(2) on a new file in `directory` by one descriptor and tries it by a second: true if the second is
/// refused. The file is gone afterwards. Local disks only: nothing here has a deadline.
Result<bool> locks_exclude(const std::string& directory);

} // namespace sharefs::sys
