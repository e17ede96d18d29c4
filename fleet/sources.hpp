#pragma once
// Sources of node names: sharefs.yaml itself, a hostfile of a launcher, Slurm, ClusterShell.
#include "fleet/node.hpp"
#include "sys/system.hpp"

#include <string>
#include <vector>

namespace sharefs::fleet {

struct NamedGroup {
  std::string name;
  std::vector<std::string> patterns;
  Origin origin;
};

struct Sources {
  std::vector<Node> list;   ///< each `name` is a pattern for expand(), without groups
  std::string hostfile;     ///< a path, or empty
  std::string slurm;        ///< a partition, or empty
  std::string clustershell; ///< a pattern of ClusterShell groups ("@gpus"), or empty
  std::vector<NamedGroup> groups;
  std::vector<Node> servers; ///< the machines of `servers:`
  Origin origin;             ///< of sharefs.yaml
};

/// Returns all nodes in the order of their sources; servers that no other source names come last. Reads the hostfile
/// and runs sinfo(1) and nodeset(1). Errors: `config` with the place, `not_found` for a missing program or file,
/// `failed` with the program's message.
Result<std::vector<Node>> read_nodes(sys::System& system, const Sources& sources);

} // namespace sharefs::fleet
