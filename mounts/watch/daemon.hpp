#pragma once
// Reads and changes the state of the daemon's service, sharefs-watch.service.
#include "plan/plan.hpp"
#include "sys/system.hpp"

#include <string>

namespace sharefs::mounts::watch {

inline constexpr const char* k_watch_unit = "sharefs-watch.service";

struct Daemon {
  bool systemd = false;  ///< systemd runs on this machine
  std::string unit_file; ///< path of the unit; empty: it is not installed
  bool enabled = false;  ///< the service is started at boot
  bool active = false;   ///< the service runs
};
Daemon probe_daemon(sys::System& system);
/// Returns Daemon::unit_file.
std::string find_unit_file(sys::System& system);

/// Plans that the service runs now and at each boot, or (not `wanted`) that it ends. The plan is empty if nothing is to
/// be changed, or if systemd or the unit is missing.
plan::Plan plan_daemon(const Daemon& daemon, bool wanted);

} // namespace sharefs::mounts::watch
