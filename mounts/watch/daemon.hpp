#pragma once
// The daemon as a service of this machine: sharefs-watch.service.
#include "plan/plan.hpp"
#include "sys/system.hpp"

#include <string>

namespace sharefs::mounts::watch {

inline constexpr const char* k_watch_unit = "sharefs-watch.service";

struct Daemon {
  bool systemd = false;  ///< it runs on this machine
  std::string unit_file; ///< of the package; empty: it is not installed
  bool enabled = false;  ///< it is started at boot
  bool active = false;   ///< it runs
};
Daemon probe_daemon(sys::System& system);
/// Daemon::unit_file.
std::string find_unit_file(sys::System& system);

/// Makes it run now and at each boot, or (not `wanted`) end. Empty where it is so, and where systemd or the unit is
/// missing.
plan::Plan plan_daemon(const Daemon& daemon, bool wanted);

} // namespace sharefs::mounts::watch
