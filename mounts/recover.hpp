#pragma once
// The ladder of recovery: nothing is unmounted on one time-out, and nothing while the server is away.
#include "mounts/holders.hpp"
#include "mounts/plan_unmount.hpp"
#include "mounts/probe.hpp"
#include "plan/plan.hpp"

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace sharefs::mounts {

inline constexpr int k_recovery_looks = 3; ///< that must agree on "stale"
inline constexpr std::chrono::milliseconds k_recovery_pause{1000};
inline constexpr std::chrono::milliseconds k_recovery_deadline{2000}; ///< of one look, and of a search for holders

enum class Remedy {
  none,    ///< it is well
  mount,   ///< it is not mounted: mount it
  remount, ///< unmount, then mount again
  detach,  ///< unmount only: asked for by --force while the server is away
  wait,    ///< nothing can be done now; nothing is changed
};

struct Decision {
  Remedy remedy = Remedy::none;
  Diagnoses diagnoses;
  friend bool operator==(const Decision&, const Decision&) = default;
};

/// `looks`: the health that each look at the mount saw, in order; `state` carries the last one.
/// stale in every look and the server there -> remount; stale then well -> none; stale now and then -> wait;
/// hung -> wait, or with `force` detach (server away) or remount (server there), or with `moved` remount if the server
/// is there and at another address than the mount uses. Of all others none, if diagnose()
/// finds no error, else wait.
Decision choose_remedy(const MountState& state, const std::vector<Health>& looks, const sys::NfsProbe* server,
                       bool force, bool moved = false);

/// What is known before a recovery, and what was asked for.
struct RecoveryRequest {
  Observation seen;
  std::vector<MountPoint> wanted;                   ///< of `seen`
  std::map<std::string, std::vector<Health>> looks; ///< by target, the health that each look saw
  std::map<std::string, HolderReport> holders;      ///< by target; who uses those that are broken
  bool force = false;
  bool moved = false; ///< also what hangs at an address that its server has left
  std::chrono::milliseconds unmount_deadline{10'000}, mount_deadline{30'000};
};

/// Asks the doubtful mounts of `seen` again until the looks agree, since a stale mount may heal by itself when its
/// server exports anew; and finds who uses those that are broken. Takes some seconds if there are any.
RecoveryRequest probe_recovery(sys::System& system, Observation seen, std::vector<MountPoint> wanted);

MountPlan plan_recovery(const RecoveryRequest& request);

/// The targets that more looks are needed for: stale ones, and hung ones whose server is there.
std::vector<std::string> doubtful(const Observation& seen);

/// After the plan was done: is the mount of `target` a new one that works? `before` and `after` are its entries.
Diagnoses check_recovered(const MountState& before, const MountState& after);

/// The mounts that the plan was to bring back, as they are now.
struct RecoveryCheck {
  std::set<std::string> good; ///< targets
  Diagnoses diagnoses;
};
RecoveryCheck check_recovery(sys::System& system, const RecoveryRequest& request, const MountPlan& plan,
                             std::chrono::milliseconds deadline);

} // namespace sharefs::mounts
