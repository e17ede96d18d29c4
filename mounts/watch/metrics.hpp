#pragma once
// What node_exporter's textfile collector reads: Prometheus' text format. docs/metrics.md has the table.
#include "mounts/watch/decide.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace sharefs::mounts::watch {

/// What the rounds know of the mounts.
struct Seen {
  std::vector<Watched> mounts;
  std::map<std::string, bool> servers; ///< by host as the mounts name it: whether it answered
  /// Since the start: runs by their result ("done", "failed", "busy") for each mount.
  std::map<std::pair<std::string, std::string>, std::uint64_t> recoveries; ///< by (mount, result)
};

/// What the daemon knows of itself.
struct Figures {
  std::string version;
  std::uint64_t rounds = 0;
  std::chrono::duration<double> round_took{0};
  std::chrono::system_clock::time_point now;
  bool config_valid = true; ///< sharefs.yaml as it is now
};

/// A whole file; no label is invalid, whatever mounts are called. A mount that was not looked at yet has no figures.
std::string format_metrics(const Figures& figures, const Seen& seen);

} // namespace sharefs::mounts::watch
