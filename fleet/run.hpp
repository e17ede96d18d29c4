#pragma once
// Running one command on many nodes: in an order that limits the damage of a failure, with a record on this machine's
// disk from which another process can go on.
#include "fleet/engine.hpp"
#include "fleet/outcome.hpp"
#include "plan/private_directory.hpp"
#include "sys/system.hpp"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace sharefs::fleet {

/// How many failures end a run: a number, or a percentage of all nodes. Unreachable nodes count.
struct MostFailures {
  std::size_t count = 3;
  bool is_percent = false;
  /// Returns how many of `nodes` nodes may fail.
  [[nodiscard]] std::size_t of(std::size_t nodes) const;
};
/// Reads "3" or "5%"; nullopt for anything else.
std::optional<MostFailures> parse_most_failures(std::string_view text);

/// How the nodes of a run are reached, and when the run stops.
struct Settings {
  const Engine* engine = nullptr;
  std::string path = {}; ///< path_for_engines()
  unsigned at_a_time = 64;
  std::size_t canary = 1;
  MostFailures most_failures;
  std::chrono::seconds command{600};        ///< time for the command on a node
  std::chrono::seconds check_deadline{120}; ///< time for a question, and for the check before a change
};

struct Batch {
  std::vector<Node> nodes;
  bool must_succeed = false; ///< one failure ends the run
  bool needs_all = false; ///< not begun before the change is done on all other nodes, whatever `most_failures` allows
};
/// Returns the batches of a change: the servers, then `canary` nodes, a tenth of the rest, and the rest. `servers_last`
/// is for a change that removes what clients depend on: one of them that still has its mounts would hang.
std::vector<Batch> batches_for_changes(const std::vector<Node>& nodes, std::size_t canary, bool servers_last = false);

struct Request {
  std::vector<Node> nodes;
  bool at_once = false;      ///< the nodes wait for one another: all run together, and no failure ends the run
  bool servers_last = false; ///< see batches_for_changes()
  Settings settings = {};
  Asking asking = {};                             ///< program, here and command are filled in by run_on_nodes()
  std::map<std::string, std::string> inputs = {}; ///< by node: standard input of its script
  std::string ssh_config = {}; ///< a complete ssh_config(5); empty: ssh's own files with the addresses of nodes
  /// Decides the outcome of a node whose script has ended, from its output; empty: from frames.
  std::function<Outcome(const Node&, const std::string& out, const Ended&)> read = {};
  /// Write the answers to the disk; not needed for a question whose answers nobody reads later.
  bool keeps_record = true;
  std::vector<Outcome> before = {};    ///< outcomes of an earlier run, which belong into the record, too
  std::vector<Node> failed_check = {}; ///< nodes that are left out because they failed the check before the change
};

struct Run {
  std::vector<Outcome> outcomes; ///< one per node, in the order of the batches
  bool stopped = false;          ///< it ended after too many failures, or after a failure of a canary
  bool interrupted = false;      ///< ended by Ctrl-C
  std::optional<Error> problem;  ///< a failure of the engine or of the record, after which no more nodes were begun
};

/// Returns a name that sorts by time; `ago` is for comparing ages.
std::string new_run_id(std::chrono::seconds ago = std::chrono::seconds(0));
/// Returns a name that sorts behind the newest one, also if the clock was set back since.
std::string new_run_id(const std::string& newest);

/// True if the node is the machine on which this program runs.
bool is_here(const sys::Identity& identity, const Node& node);

/// Callbacks: one for each answer, once it is on the disk; one about once a second with the last line on the standard
/// error of a node that is still at work (not with srun, which has one stream for all nodes).
struct Listener {
  std::function<void(const Outcome&)> answered;
  std::function<void(const std::string& node, const std::string& line)> progressed = {};
};
/// Runs the request. Errors: those of the record's directory, which must belong to this user alone.
Result<Run> run_on_nodes(sys::System& system, const std::string& directory, const Request& request,
                         const Listener& listener);

/// Writes the outcomes to a directory, for read_outcomes().
Result<void> write_outcomes(const plan::PrivateDirectory& directory, const std::vector<Outcome>& outcomes);
/// Reads the record of a run: the outcomes of nodes that answered, by name. The last one of a node counts.
Result<std::map<std::string, Outcome>> read_outcomes(sys::System& system, const std::string& directory);

} // namespace sharefs::fleet
