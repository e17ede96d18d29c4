#pragma once
// What node_exporter's textfile collector reads: Prometheus' text format. docs/metrics.md has the table.
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sharefs::watch {

struct MountFigures {
  std::string name, target, server;
  std::string state; ///< "stale", as `sharefs status` has it
  bool well = false;
  bool moved = false;
  std::optional<std::chrono::microseconds> latency = std::nullopt; ///< of an answer
  std::uint64_t size_bytes = 0, free_bytes = 0;                    ///< with a latency
};

struct Figures {
  std::string version;
  std::vector<MountFigures> mounts;
  std::map<std::string, bool> servers; ///< whether each answers
  /// Since the start: runs by their result ("done", "failed", "busy") for each mount.
  std::map<std::pair<std::string, std::string>, std::uint64_t> recoveries; ///< by (mount, result)
  std::uint64_t rounds = 0;
  std::chrono::duration<double> round_took{0};
  std::chrono::system_clock::time_point now;
  bool config_valid = true; ///< sharefs.yaml as it is now
};

/// A whole file; no label is invalid, whatever mounts are called.
std::string format_metrics(const Figures& figures);

} // namespace sharefs::watch
