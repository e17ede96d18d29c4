#pragma once
// Metrics in Prometheus' text format, for the textfile collector of node_exporter. docs/metrics.md has the table.
#include "mounts/watch/decide.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace sharefs::mounts::watch {

/// The facts about the mounts that the rounds have found.
struct WatchedFacts {
  std::vector<Watched> mounts;
  std::map<std::string, bool> servers; ///< whether a server answered, by the host name that the mounts use
  /// Number of recoveries since the start, by (mount, result); the results are "done", "failed", "busy".
  std::map<std::pair<std::string, std::string>, std::uint64_t> recoveries;
};

/// The facts about the daemon itself.
struct DaemonFacts {
  std::string version;
  std::uint64_t rounds = 0;
  std::chrono::duration<double> round_took{0};
  std::chrono::system_clock::time_point now;
  bool config_valid = true; ///< the present sharefs.yaml can be read
};

/// Returns a whole file. All labels are valid, whatever the names of the mounts. A mount that was not checked yet has
/// no metrics.
std::string format_metrics(const DaemonFacts& daemon, const WatchedFacts& watched);

} // namespace sharefs::mounts::watch
