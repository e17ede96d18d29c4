#pragma once
// Before a job starts: are the mounts there that its paths lie on? After a reboot without them it would write all of
// its outputs to the node's own disk.
#include "base/diagnosis.hpp"
#include "sys/system.hpp"

#include <string>
#include <vector>

namespace sharefs::mounts {

/// A place where something should be mounted.
struct Expected {
  std::string target; ///< absolute, normalized
  std::string name;   ///< of sharefs.yaml; else empty
  std::string origin; ///< who says so: "sharefs.yaml:12", or BootEntry::origin
  friend bool operator==(const Expected&, const Expected&) = default;
};

struct Launch {
  std::vector<std::string> words;       ///< of the command
  std::vector<std::string> environment; ///< NAME=value; search paths (`...PATH`), PWD and OLDPWD do not count
  std::string working_directory;
};

/// SF418 for each expected mount that a path of the launch lies on, and that is not there, stale or hung (within
/// `deadline`). An automounter counts as there. The working directory counts only where nothing is mounted.
Diagnoses guard_launch(sys::System& system, const std::vector<Expected>& expected, const Launch& launch,
                       std::chrono::milliseconds deadline);

} // namespace sharefs::mounts
