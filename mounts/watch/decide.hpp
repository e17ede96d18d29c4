#pragma once
// Whether a mount is recovered now, and why (not): by its state, the policy, the pace, and what was done to it last.
#include "mounts/state.hpp"
#include "mounts/watch/last_change.hpp"
#include "mounts/watch/pace.hpp"

#include <optional>
#include <string>

namespace sharefs::mounts::watch {

/// watch.recover of sharefs.yaml.
enum class Policy { stale, all, never };
Policy policy_of(const std::string& word);

/// What a policy has to know of a mount's state.
enum class Trouble {
  none,
  stale,
  missing,
  moved, ///< it hangs at an address that its server's name no longer leads to
  hung,
  other, ///< what only a person can cure
};
Trouble trouble_of(const MountState& state);

/// A mount of sharefs.yaml from one round to the next.
struct Watched {
  MountPoint point;
  std::optional<MountState> state; ///< nullopt: not looked at yet
  Trouble trouble = Trouble::none;
  std::size_t looks = 0; ///< in a row, with this trouble
  std::size_t hung = 0;  ///< looks in a row that hung
  Time rests_until;      ///< one that hangs is not asked again before
  bool tried = false;    ///< a recovery has worked on it, and the next look says what came of that
  std::string why;       ///< as it was last said
  [[nodiscard]] bool is_well() const { return trouble == Trouble::none; }
};

/// A missing mount must be seen missing that often: what mounts it at boot, or an administrator, comes first.
inline constexpr std::size_t k_missing_looks = 2;

struct WatchDecision {
  bool recover = false;
  std::string why; ///< one phrase, either way; "" for a mount that is well
  friend bool operator==(const WatchDecision&, const WatchDecision&) = default;
};
WatchDecision decide(const Watched& mount, bool server_there, LastChange last, Policy policy, const Pace& pace,
                     Time now);

} // namespace sharefs::mounts::watch
