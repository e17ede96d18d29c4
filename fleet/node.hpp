#pragma once
// The machines of the cluster: one model for all the places where their names may stand, and the texts of those places.
#include "base/fields.hpp"
#include "base/origin.hpp"
#include "base/result.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sharefs::fleet {

struct Node {
  std::string name;                   ///< as launchers and ssh are given it
  std::string address = {};           ///< where ssh connects to; empty: the name
  std::string user = {};              ///< that ssh logs in as; empty: ssh's own
  std::optional<unsigned> slots = {}; ///< processes that a launcher starts there
  std::vector<std::string> groups = {};
  Origin origin = {};
  std::string words = {}; ///< for this node alone: further words of a command, of letters and digits

  [[nodiscard]] bool in(std::string_view group) const;
  friend bool operator==(const Node&, const Node&) = default;
};
/// Without its place, which is a person's.
template <FieldsOf<Node> N> auto fields(N& n) {
  return named("name", n.name, "address", n.address, "user", n.user, "slots", n.slots, "groups", n.groups, "words",
               n.words);
}

/// Of the machines that `servers:` names, and of all others.
inline constexpr std::string_view k_servers = "servers", k_clients = "clients", k_all = "all";

/// The names of a group, in its order; `*` is every node. Error `usage` with a "did you mean" if there is none of this
/// name.
using Group = std::function<Result<std::vector<std::string>>(const std::string& name)>;
inline constexpr std::string_view k_every_node = "*";
/// The groups of these nodes, which must outlive it.
Group groups_among(const std::vector<Node>& nodes);

/// The most nodes of one list. ClusterShell's folding of irregular names takes minutes for fewer.
inline constexpr std::size_t k_most_nodes = 10'000;

/// "gpu[01-64/2],storage1", as nodeset(1) has it: ranges, several in a name, steps; `,` adds, `!` takes away, `&` keeps
/// what is in both, `^` what is in one of both, from left to right; `@NAME` is a group; `*` and `?` stand for signs of
/// names that the groups know. Order is kept, and a name that comes twice stays where it came first. Error `usage` with
/// the column.
Result<std::vector<std::string>> expand(std::string_view pattern, const Group& group = nullptr);

/// The names in as few words as ranges of their last numbers can say: "gpu[01-64],storage1". Takes one pass.
std::string fold(const std::vector<std::string>& names);

/// A file with a node in each line, as DeepSpeed (`gpu1 slots=8`), Open MPI (`gpu1 slots=8 max_slots=16`) and MPICH
/// (`gpu1:8`) read it; a name alone will do. As with DeepSpeed a node that comes twice, a line of another form and a
/// file without nodes are errors (deepspeed/launcher/runner.py). Error `config` with the place.
Result<std::vector<Node>> parse_hostfile(std::string_view text, const std::string& file);

enum class ListFormat { names, hostfile, openmpi, slurm, clustershell, ansible };
/// The nodes as another tool reads them. Error `usage` where it needs what is not known: DeepSpeed the slots, Slurm
/// names that its ranges can say.
Result<std::string> format_nodes(const std::vector<Node>& nodes, ListFormat format);

/// One list of those of several places. Servers that stand in a list of the user, too, are one node. Error `config`
/// where a node comes twice, with both places.
Result<std::vector<Node>> merge(std::vector<Node> listed, const std::vector<Node>& servers);

/// What `--on` names: patterns as expand() reads them, of names and groups (`@a100`, `all`, `servers`, `clients`).
/// Error `usage` with a "did you mean" for a name that is none of the nodes.
Result<std::vector<Node>> select(const std::vector<Node>& nodes, const std::string& pattern);

} // namespace sharefs::fleet
