#pragma once
// The daemon: looks after the mounts until it is stopped. A recovery is `sharefs recover`, in a process of its own.
#include "mounts/watch/rounds.hpp"
#include "sys/process/service_manager.hpp"

namespace sharefs::mounts::watch {

/// What sharefs.yaml says.
struct Settings {
  std::vector<MountPoint> points;
  std::string interval, recover;                         ///< as they stand there
  std::string textfile;                                  ///< of the metrics; empty: none are written
  std::function<std::set<std::string>()> missing_images; ///< staged images without their mounts
};

/// What the command line gives to the daemon.
struct Surroundings {
  std::function<Result<Settings>()> read_settings; ///< as sharefs.yaml is now
  Rounds::OpenJournal open_journal;
  Rounds::Log log;
  sys::ServiceManager manager;
  std::vector<std::string> flags; ///< for each sharefs that the daemon runs: --config FILE
};

/// One round, and what follows from it. Returns whether all mounts are well.
Result<bool> watch_once(sys::System& system, Surroundings surroundings);
/// Until SIGTERM or SIGINT; SIGHUP reads the settings again.
Result<void> watch(sys::System& system, Surroundings surroundings);

} // namespace sharefs::mounts::watch
