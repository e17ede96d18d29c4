#pragma once
// Where the names of nodes come from: sharefs.yaml itself, a file of a launcher, Slurm, ClusterShell.
#include "fleet/node.hpp"
#include "sys/system.hpp"

#include <string>
#include <vector>

namespace sharefs::fleet {

/// Names with what is the same for all of them.
struct Listed {
  std::string pattern; ///< as expand() reads it; without groups
  std::string address, user;
  std::optional<unsigned> slots;
  Origin origin;
};

struct NamedGroup {
  std::string name;
  std::vector<std::string> patterns;
  Origin origin;
};

struct Sources {
  std::vector<Listed> list;
  std::string hostfile;     ///< a path, or empty
  std::string slurm;        ///< a partition, or empty
  std::string clustershell; ///< a pattern of groups of ClusterShell's ("@gpus"), or empty
  std::vector<NamedGroup> groups;
  std::vector<Node> servers; ///< of `servers:`
  Origin origin;             ///< of the file that says so

  [[nodiscard]] bool empty() const;
};

/// All nodes in the order of their places, servers that no other place names last. Reads the hostfile, asks sinfo(1)
/// and nodeset(1). Errors: `config` with the place, `not_found` for a program or a file, `failed` for what it says.
Result<std::vector<Node>> read_nodes(sys::System& system, const Sources& sources);

} // namespace sharefs::fleet
