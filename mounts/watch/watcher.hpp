#pragma once
// The daemon: checks and recovers the mounts until it is stopped. It runs `sharefs recover` in a process of its own.
#include "mounts/watch/rounds.hpp"
#include "sys/process/service_manager.hpp"

namespace sharefs::mounts::watch {

/// The settings of sharefs.yaml.
struct Settings {
  std::string text; ///< of the whole file
  std::vector<MountPoint> points;
  std::string interval, recover;                         ///< as they are written there
  std::string textfile;                                  ///< file for the metrics; empty: none are written
  std::function<std::set<std::string>()> missing_images; ///< returns staged images that are not mounted
  /// Returns the environments whose present generation is not staged here; nullptr: the daemon stages nothing.
  std::function<std::vector<std::string>()> unstaged;
};

/// The functions and values that the command line gives to the daemon.
struct WatchInputs {
  std::function<Result<Settings>()> read_settings; ///< reads the present sharefs.yaml
  Rounds::OpenJournal open_journal;
  Rounds::Log log;
  sys::ServiceManager manager;
  std::vector<std::string> flags; ///< options for each sharefs that the daemon runs: --config FILE
  /// Keeps the text of a sharefs.yaml, and returns the options for a sharefs that is to read it instead of the file.
  std::function<Result<std::vector<std::string>>(const std::string& text)> keep_text;
};

/// Runs rounds until SIGTERM or SIGINT, and returns true then; SIGHUP reads the settings again. `once`: runs one round
/// and the recovery that follows from it, and returns whether all mounts are well.
Result<bool> watch(sys::System& system, WatchInputs inputs, bool once);

} // namespace sharefs::mounts::watch
