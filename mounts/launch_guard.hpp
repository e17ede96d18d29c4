#pragma once
// Checks before a job starts whether the mounts below its paths are there. After a reboot without them the job would
// write all of its outputs to the node's own disk.
#include "base/diagnosis.hpp"
#include "sys/system.hpp"

#include <string>
#include <vector>

namespace sharefs::mounts {

/// A place where something should be mounted.
struct Expected {
  std::string target; ///< absolute, normalized
  std::string name;   ///< its name in sharefs.yaml; else empty
  std::string origin; ///< where the mount is configured: "sharefs.yaml:12", or BootEntry::origin
  friend bool operator==(const Expected&, const Expected&) = default;
};

struct Launch {
  std::vector<std::string> words;       ///< the words of the command
  std::vector<std::string> environment; ///< NAME=value; search paths (`...PATH`), PWD and OLDPWD are ignored
  std::string working_directory;
};

/// Returns SF418 for each expected mount that a path of the launch needs and that is missing, stale or hung (no answer
/// within `deadline`). An automount point counts as mounted. The working directory is checked only for missing mounts.
Diagnoses check_launch_mounts(sys::System& system, const std::vector<Expected>& expected, const Launch& launch,
                              std::chrono::milliseconds deadline);

} // namespace sharefs::mounts
