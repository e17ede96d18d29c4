#pragma once
// Limits how often recoveries are tried: the pause of each mount doubles, and there is a limit for all mounts together.
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
/// A mount that was well for this time begins with the first pause again; a mount that fails again and again does not.
inline constexpr std::chrono::minutes k_forgiven_after{10};
inline constexpr std::size_t k_most_runs = 6; ///< for all mounts together, in k_run_window
inline constexpr std::chrono::minutes k_run_window{10};

/// Returns the pause after this number of attempts in a row: k_first_pause, twice that, ... k_longest_pause.
std::chrono::seconds pause_after(std::size_t attempt);

class Pace {
 public:
  /// Returns from when on this mount may be recovered again; Time{} if it was not tried yet.
  [[nodiscard]] Time next_attempt(const std::string& target) const;
  [[nodiscard]] std::size_t attempts(const std::string& target) const;
  /// Returns from when on any mount may be recovered; Time{}: now.
  [[nodiscard]] Time next_run(Time now) const;
  /// Counts a run that has tried these mounts.
  void add_run(const std::set<std::string>& targets, Time now);
  /// Records whether a check found the mount well.
  void add_check(const std::string& target, bool well, Time now);
  /// Forgets all other mounts.
  void keep_only(const std::set<std::string>& targets);

 private:
  struct Tries {
    std::size_t attempts = 0;
    Time last, well_since;
  };
  std::map<std::string, Tries> m_tries; ///< by target
  std::deque<Time> m_runs;              ///< times of the last k_most_runs runs
};

} // namespace sharefs::mounts::watch
