#pragma once
// Host keys of nodes that ssh does not know: what they offer, whether it is believed, and known_hosts.
#include "fleet/reach.hpp"
#include "plan/plan.hpp"

#include <string>
#include <vector>

namespace sharefs::fleet {

/// The lines of this machine's files of known hosts that are about the node, names hashed or not (ssh-keygen -F).
Result<std::vector<std::string>> known_host_lines(sys::System& system, const Reached& reached);

/// Those of the nodes in the state `host_key` of which no key is known, with the keys that they offer; of the others it
/// is noted that they have another one.
Result<std::vector<Reached>> find_host_keys(Trust& trust);

/// Which keys are believed.
struct Acceptance {
  bool all = false;
  std::string list = {}; ///< a file that lists fingerprints; empty: none
};
/// Those that are believed are `pending` then, and come back with only these keys; of the others it is noted why not.
Result<std::vector<Reached>> accept_keys(Trust& trust, std::vector<Reached> unknown, const Acceptance& acceptance);

/// The new lines of known_hosts, and that of the authority, a public key's line, where it is not empty.
Result<plan::Plan> plan_known_hosts(const Trust& trust, const std::vector<Reached>& accepted,
                                    const std::string& authority, bool for_all_users);

} // namespace sharefs::fleet
