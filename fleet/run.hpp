#pragma once
// One command on many nodes: in an order in which little can go wrong at once, with a record on this machine's disk
// from which another process can go on.
#include "fleet/engine.hpp"
#include "fleet/outcome.hpp"
#include "plan/private_directory.hpp"
#include "sys/system.hpp"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace sharefs::fleet {

/// How many failures end a run: a number, or a part of all nodes. Unreachable nodes count.
struct MostFailures {
  std::size_t count = 3;
  bool is_percent = false;
  [[nodiscard]] std::size_t of(std::size_t nodes) const;
};
/// "3" or "5%"; nullopt: neither.
std::optional<MostFailures> parse_most_failures(std::string_view text);

/// How the nodes of a run are reached, and when it stops.
struct Settings {
  const Engine* engine = nullptr;
  std::string path = {}; ///< path_for_engines()
  unsigned at_a_time = 64;
  std::size_t canary = 1;
  MostFailures most_failures;
  std::chrono::seconds command{600}; ///< by when the command ends on a node
  std::chrono::seconds looking{600}; ///< the same for the look before a change
};

struct Batch {
  std::string what; ///< "servers", "canary", "10 %", "the rest"
  std::vector<Node> nodes;
  bool must_succeed = false; ///< one failure ends the run
};
/// Servers first, then so many nodes as a canary, a tenth of the rest, and the rest. `servers_last`: for what takes
/// back what clients stand on.
std::vector<Batch> batches_for_changes(const std::vector<Node>& nodes, std::size_t canary, bool servers_last = false);

struct Request {
  std::vector<Node> nodes;
  bool at_once = false;      ///< the nodes wait for one another: there is no order, and no failure ends it
  bool servers_last = false; ///< see batches_for_changes()
  Settings settings = {};
  Asking asking = {};                             ///< program, here and command are filled in
  std::map<std::string, std::string> inputs = {}; ///< by node: what its script reads
  std::string ssh_config = {}; ///< the text of a whole ssh_config(5); empty: ssh's own with addresses
  /// What became of a node whose script has ended, from what it printed; empty: by frames.
  std::function<Outcome(const Node&, const std::string& out, const Ended&)> read = {};
  bool keeps_record = true;         ///< of what came, on the disk; a question to be forgotten needs none
  std::vector<Outcome> before = {}; ///< of nodes on which an earlier run has done it: they stand in the record, too
};

struct Run {
  std::string directory;         ///< its record
  std::vector<Outcome> outcomes; ///< one per node, in the order of the batches
  bool stopped = false;          ///< after too many failures, or the failure of a canary
  bool interrupted = false;      ///< by Ctrl-C
  std::string problem;           ///< of the engine itself
};

/// The node is the machine that this program runs on.
bool is_here(const sys::Identity& identity, const Node& node);

/// Is told of each answer as it comes, after it is on the disk; and about once a second of the last line that a node
/// that is still at work has said on its standard error (not by srun, which has one stream for all).
struct Listener {
  std::function<void(const Outcome&)> came;
  std::function<void(const std::string& node, const std::string& line)> said = {};
};
/// Runs it. Errors: those of the record's directory, which must be this user's alone.
Result<Run> run_on_nodes(sys::System& system, const std::string& directory, const Request& request,
                         const Listener& listener);

/// Leaves them in a directory for read_outcomes().
Result<void> write_outcomes(const plan::PrivateDirectory& directory, const std::vector<Outcome>& outcomes);
/// The record of a run: `outcomes` of nodes that answered, by name; the last counts.
Result<std::map<std::string, Outcome>> read_outcomes(sys::System& system, const std::string& directory);

} // namespace sharefs::fleet
