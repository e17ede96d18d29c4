#pragma once
// Reads what the files of this machine mount.
#include "sys/mounts/configured_mounts.hpp"
#include "sys/system.hpp"

#include <vector>

namespace sharefs::sys {

/// Returns the lines of /etc/fstab, then the .mount units in /etc/systemd/system. An entry that mounts only by hand
/// (noauto, a unit that is not enabled) is one of them. A file that cannot be read counts as empty.
std::vector<ConfiguredMount> read_configured_mounts(System& system);

} // namespace sharefs::sys
