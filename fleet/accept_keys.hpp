#pragma once
// Accepting host keys: the keys that unknown nodes offer, whether they are accepted, and the lines of known_hosts.
#include "fleet/reach.hpp"
#include "plan/plan.hpp"

#include <string>
#include <vector>

namespace sharefs::fleet {

/// Returns the lines for the node in this machine's known_hosts files, with plain or hashed names (ssh-keygen -F).
Result<std::vector<std::string>> known_host_lines(sys::System& system, const Reached& reached);

/// Returns the nodes in the state `host_key` for which no key is known, with the keys that they offer. A node for which
/// another key is known is noted in `trust`.
Result<std::vector<Reached>> find_host_keys(Trust& trust);

/// Which host keys are accepted.
struct Acceptance {
  bool all = false;      ///< every key that is offered
  std::string list = {}; ///< a file with fingerprints; only these keys are accepted; empty: none
};
/// Returns the accepted nodes, each with its accepted keys only, and sets their state to `pending`. The reason why
/// another node is not accepted is noted in `trust`.
Result<std::vector<Reached>> accept_keys(Trust& trust, std::vector<Reached> unknown, const Acceptance& acceptance);

/// Plans the new lines of known_hosts. `authority` is the line of an authority's public key, which is added too; empty:
/// none.
Result<plan::Plan> plan_known_hosts(const Trust& trust, const std::vector<Reached>& accepted,
                                    const std::string& authority, bool for_all_users);

} // namespace sharefs::fleet
