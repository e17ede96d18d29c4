#pragma once
// Decides whether a mount is recovered now, and why: by its state, the policy, the pauses between recoveries, and the
// last change that sharefs made to it.
#include "mounts/state.hpp"
#include "plan/journal.hpp"

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>

namespace sharefs::mounts::watch {

using Time = std::chrono::steady_clock::time_point;

// Limits how often recoveries are tried: the pause of each mount doubles, and there is a limit for all mounts together.
inline constexpr std::chrono::seconds k_first_pause{30};
inline constexpr std::chrono::minutes k_longest_pause{30};
/// A mount that was well for this time begins with the first pause again; a mount that fails again and again does not.
inline constexpr std::chrono::minutes k_forgiven_after{10};
inline constexpr std::size_t k_most_runs = 6; ///< for all mounts together, in k_run_window
inline constexpr std::chrono::minutes k_run_window{10};

/// Returns the pause after this number of attempts in a row: k_first_pause, twice that, ... k_longest_pause.
std::chrono::seconds pause_after(std::size_t attempt);

/// The recoveries of a mount that were tried in a row.
struct Tries {
  std::size_t attempts = 0;
  Time last;
  Time well_since; ///< Time{}: it was not well in the last check
  /// Records whether a check found the mount well.
  void add_check(bool well, Time now);
};

// Reads from the journal what sharefs has done to mounts last: a recovery that was interrupted has to go on, and a
// mount that an administrator has unmounted stays unmounted.

enum class LastChange {
  none,        ///< there was no change, or all of it was done
  interrupted, ///< it was unmounted to be mounted again, but was not mounted again
  unmounted,   ///< it was only unmounted
};

/// Returns the last change of each target that has one. `settled_by_target` has the newest entry that no longer counts
/// for a target; nor do those of another boot than `boot_id`. A journal that cannot be read gives nothing.
std::map<std::string, LastChange> read_last_changes(const plan::Journal& journal,
                                                    const std::map<std::string, std::string>& settled_by_target,
                                                    const std::string& boot_id);

/// Adds the changes of one entry, for those of `targets` that it is about, and removes them from `targets`. Entries are
/// read newest first, so `targets` are those without a newer change.
void add_last_changes(const plan::JournalEntry& entry, std::set<std::string>& targets,
                      std::map<std::string, LastChange>& changes);

/// The values of watch.recover in sharefs.yaml.
enum class Policy { stale, all, never };
Policy parse_policy(const std::string& word);

/// The kinds of states that the policy distinguishes.
enum class Problem {
  none,
  stale,
  missing,
  moved, ///< it hangs, and the name of its server has another address now
  hung,
  other, ///< a state that only a person can repair
};
Problem problem_of(const MountState& state);

/// A mount of sharefs.yaml from one round to the next.
struct Watched {
  MountPoint point;
  std::optional<MountState> state; ///< nullopt: it was not checked yet
  Problem problem = Problem::none;
  std::size_t checks = 0; ///< number of checks in a row that found this problem
  std::size_t hung = 0;   ///< number of checks in a row that found it hung
  Time next_check;        ///< if it hangs, it is not checked again before this time
  Tries tries;
  std::string settled;         ///< journal entry: it was mounted after this one and all older ones; "": not known
  bool recovery_ended = false; ///< a recovery has worked on it, and the next check shows the result
  std::string why;             ///< the reason that was logged last
  [[nodiscard]] bool is_well() const { return problem == Problem::none; }
};

/// So many checks in a row must find a mount missing before it is recovered, so that an entry at boot or an
/// administrator can mount it first.
inline constexpr std::size_t k_missing_checks = 2;

struct WatchDecision {
  bool recover = false;
  std::string why; ///< why it is recovered or not, one phrase; "" if nothing is wrong
  friend bool operator==(const WatchDecision&, const WatchDecision&) = default;
};
/// `next_run`: from when on any mount may be recovered; Time{}: now.
WatchDecision decide(const Watched& mount, bool server_there, LastChange last, Policy policy, Time next_run, Time now);

} // namespace sharefs::mounts::watch
