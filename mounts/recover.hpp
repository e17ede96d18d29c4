#pragma once
// Plans the recovery of mounts. One time-out is no reason to unmount, and neither is a server that is away.
#include "mounts/holders.hpp"
#include "mounts/plan_mount.hpp"
#include "mounts/probe.hpp"
#include "plan/plan.hpp"

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace sharefs::mounts {

inline constexpr int k_recovery_checks = 3; ///< how many checks in a row must find a mount stale
inline constexpr std::chrono::milliseconds k_recovery_pause{1000};
inline constexpr std::chrono::milliseconds k_recovery_deadline{2000}; ///< of one check, and of a search for holders

enum class Remedy {
  none,    ///< nothing is wrong
  mount,   ///< mount it, because it is not mounted
  remount, ///< unmount it, then mount it again
  detach,  ///< only unmount it, by --force while the server is away
  wait,    ///< change nothing, because nothing can be done now
};

struct Decision {
  Remedy remedy = Remedy::none;
  Diagnoses diagnoses;
  friend bool operator==(const Decision&, const Decision&) = default;
};

/// Chooses the remedy for a mount. `checks` is the health that each check found, in order; `state` has the last one.
/// - stale in every check: remount if the server answers; else wait, or with `force` detach
/// - stale now, but not in every check: wait
/// - hung: wait; with `force` remount (the server answers) or detach (it does not); with `moved` remount if the server
///   answers at another address than the mount uses
/// - missing: mount if it is wanted
/// - any other health: none if diagnose() finds no error, else wait
Decision choose_remedy(const MountState& state, const std::vector<Health>& checks, const sys::NfsProbe* server,
                       bool force, bool moved = false);

/// The observation before a recovery, and what was asked for.
struct RecoveryRequest {
  Observation seen;
  std::map<std::string, std::vector<Health>> checks; ///< the health that each check found, by target
  std::map<std::string, HolderReport> holders;       ///< the processes that use broken mounts, by target
  /// Staged copies that are mounted over directories of shares. They are detached with their share, and the caller
  /// mounts them again.
  std::set<std::string> staged = {};
  bool force = false;
  bool moved = false; ///< also recover mounts that hang at an address that their server has left
};

/// Asks the doubtful mounts of `seen` again (k_recovery_checks), because a stale mount may work again by itself when
/// its server has exported anew. Then it finds the processes that use broken mounts. It takes some seconds if there are
/// any.
RecoveryRequest probe_recovery(sys::System& system, Observation seen);

MountPlan plan_recovery(const RecoveryRequest& request);

/// Finds the mounts that need more checks: stale ones, and hung ones whose server answers.
std::vector<MountState*> find_doubtful(Observation& seen);

/// Checks after the plan was done that a mount is there and works. `before` and `after` are its states.
Diagnoses check_recovered(const MountState& before, const MountState& after);

/// The result of a recovery.
struct RecoveryCheck {
  std::set<std::string> good; ///< targets of the planned mounts that work now
  Diagnoses diagnoses;
};
/// Probes the mounts that the plan was to bring back.
RecoveryCheck check_recovery(sys::System& system, const RecoveryRequest& request, const MountPlan& plan,
                             std::chrono::milliseconds deadline);

} // namespace sharefs::mounts
