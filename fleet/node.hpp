#pragma once
// The machines of the cluster: one type for the nodes of all sources, and the formats of other tools that list nodes.
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
  std::string name;                   ///< the name for launchers and ssh
  std::string address = {};           ///< the host that ssh connects to; empty: the name
  std::string user = {};              ///< the user that ssh logs in as; empty: ssh's own
  std::optional<unsigned> slots = {}; ///< processes that a launcher starts there
  std::vector<std::string> groups = {};
  Origin origin = {};
  std::string words = {}; ///< further arguments of a command for this node alone; letters and digits

  [[nodiscard]] bool in(std::string_view group) const;
  friend bool operator==(const Node&, const Node&) = default;
};
/// The origin is left out, because it is only for messages.
template <FieldsOf<Node> N> auto fields(N& n) {
  return named("name", n.name, "address", n.address, "user", n.user, "slots", n.slots, "groups", n.groups, "words",
               n.words);
}

/// The group of the machines of `servers:`, the group of all other machines, and the group of both.
inline constexpr std::string_view k_servers = "servers", k_clients = "clients", k_all = "all";

/// Returns the names of a group, in its order; the group `*` is every node. Error `usage` with a "did you mean" if
/// there is no group of this name.
using Group = std::function<Result<std::vector<std::string>>(const std::string& name)>;
inline constexpr std::string_view k_every_node = "*";
/// Returns a function that finds the groups of these nodes; `nodes` must outlive it.
Group groups_among(const std::vector<Node>& nodes);

/// The most nodes in one list. (ClusterShell takes minutes to fold a smaller number of irregular names.)
inline constexpr std::size_t k_most_nodes = 10'000;

/// Expands a pattern such as "gpu[01-64/2],storage1", in the syntax of nodeset(1): ranges, several in one name, steps.
/// Operators work from left to right: `,` adds, `!` removes, `&` keeps names of both sides, `^` names of exactly one
/// side. `@NAME` is a group; `*` and `?` match names that the groups know. The order is kept, and a repeated name stays
/// in its first place. Error `usage` with the column.
Result<std::vector<std::string>> expand(std::string_view pattern, const Group& group = nullptr);

/// As expand(), and a bare name that is a group, and not a node, means the group.
Result<std::vector<std::string>>
expand_words(std::string_view pattern, const std::function<bool(const std::string&)>& is_group, const Group& group);

/// Writes the names as ranges of their last numbers, as short as possible: "gpu[01-64],storage1". Takes one pass.
std::string fold(const std::vector<std::string>& names);

/// Reads a file with one node per line, in the formats of DeepSpeed (`gpu1 slots=8`), Open MPI (`gpu1 slots=8
/// max_slots=16`) and MPICH (`gpu1:8`); a name alone is allowed. As in DeepSpeed (deepspeed/launcher/runner.py), a
/// repeated node, a line of another form and a file without nodes are errors. Error `config` with the place.
Result<std::vector<Node>> parse_hostfile(std::string_view text, const std::string& file);

/// Writes the nodes in the format of another tool: `names`, `hostfile` (of DeepSpeed), `openmpi`, `slurm`,
/// `clustershell`, `ansible`. Error `usage` for another format, and where the slots are not known that DeepSpeed needs.
Result<std::string> format_nodes(const std::vector<Node>& nodes, const std::string& format);

/// Joins the nodes of all sources to one list. A server that the user's list names too, by its address or with its
/// domain, is one node. Error `config` where a node is listed twice, or two have one address, with both places.
Result<std::vector<Node>> merge(std::vector<Node> listed, const std::vector<Node>& servers);

/// Returns the nodes of a value of `--on`: a pattern for expand() with names and groups (`@a100`, `all`, `servers`,
/// `clients`). Error `usage` with a "did you mean" for a name that is not a node.
Result<std::vector<Node>> select(const std::vector<Node>& nodes, const std::string& pattern);

} // namespace sharefs::fleet
