#pragma once
// How often a recovery is tried: with a pause that doubles for each mount, and not too often over all.
#include <chrono>
#include <cstddef>
#include <deque>
#include <map>
#include <set>
#include <string>

namespace sharefs::mounts::watch {

using Time = std::chrono::steady_clock::time_point;

inline constexpr std::chrono::seconds k_first_pause{30};
inline constexpr std::chrono::minutes k_longest_pause{30};
/// A mount that was well for so long begins with the first pause again. A flapping one is not.
inline constexpr std::chrono::minutes k_forgiven_after{10};
inline constexpr std::size_t k_most_runs = 6; ///< over all mounts, in k_run_window
inline constexpr std::chrono::minutes k_run_window{10};

/// The pause after the `attempt`th one in a row: k_first_pause, twice that, ... k_longest_pause.
std::chrono::seconds pause_after(std::size_t attempt);

class Pace {
 public:
  /// From when on the mount may be recovered (again); Time{} for one that was not tried.
  [[nodiscard]] Time next(const std::string& target) const;
  [[nodiscard]] std::size_t attempts(const std::string& target) const;
  /// From when on anything may be recovered; Time{}: now.
  [[nodiscard]] Time next_run(Time now) const;
  /// One run that worked on these.
  void tried(const std::set<std::string>& targets, Time now);
  /// What was seen of a mount: whether it is well.
  void saw(const std::string& target, bool well, Time now);
  /// Only these are watched from now on.
  void keep(const std::set<std::string>& targets);

 private:
  struct Tries {
    std::size_t attempts = 0;
    Time last, well_since;
  };
  std::map<std::string, Tries> m_tries; ///< of those that were tried
  std::deque<Time> m_runs;              ///< the last k_most_runs
};

} // namespace sharefs::mounts::watch
