#pragma once
// Whether a mount is recovered now, and why (not): by its state, the policy, the pace, and what was done to it last.
#include "base/result.hpp"
#include "watch/last_change.hpp"
#include "watch/pace.hpp"

#include <string>

namespace sharefs::watch {

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

/// A mount as this round saw it.
struct SeenMount {
  std::string target, name;
  std::string state; ///< "stale", in the words of `sharefs status`
  Trouble trouble = Trouble::none;
  bool server_there = false;
  std::size_t looks = 1; ///< rounds in a row that saw this trouble
  LastChange last = LastChange::none;
};

/// A missing mount must be seen missing that often: what mounts it at boot, or an administrator, comes first.
inline constexpr std::size_t k_missing_looks = 2;

struct Decision {
  bool recover = false;
  std::string why; ///< one phrase, either way; "" for a mount that is well
  friend bool operator==(const Decision&, const Decision&) = default;
};
Decision decide(const SeenMount& seen, Policy policy, const Pace& pace, Time now);

} // namespace sharefs::watch
