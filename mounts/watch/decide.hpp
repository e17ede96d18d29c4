#pragma once
// Decides whether a mount is recovered now, and why: by its state, the policy, the pauses between recoveries, and the
// last change that sharefs made to it.
#include "mounts/state.hpp"
#include "mounts/watch/last_change.hpp"
#include "mounts/watch/pace.hpp"

#include <optional>
#include <string>

namespace sharefs::mounts::watch {

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
  std::size_t checks = 0;      ///< number of checks in a row that found this problem
  std::size_t hung = 0;        ///< number of checks in a row that found it hung
  Time next_check;             ///< if it hangs, it is not checked again before this time
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
WatchDecision decide(const Watched& mount, bool server_there, LastChange last, Policy policy, const Pace& pace,
                     Time now);

} // namespace sharefs::mounts::watch
