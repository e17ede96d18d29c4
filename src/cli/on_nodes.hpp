#pragma once
// `--on NODES COMMAND`: sharefs on each of these nodes runs the command. Their answers become one table, one JSON
// document and one exit code.
#include "cli/context.hpp"
#include "fleet/run.hpp"
#include "plan/host_lock.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sharefs::cli {

/// Returns the options of all commands that can run on nodes, besides the global ones.
const std::vector<OptionSpec>& fleet_options();

/// Returns the nodes of sharefs.yaml, its servers included, in their order. Error `config` or `usage`.
Result<std::vector<fleet::Node>> known_nodes(Context& context);
/// Returns the first error in the nodes of a configuration. Only this machine is asked: neither Slurm nor ClusterShell,
/// and a hostfile that is not here is left out. `groups` are checked where all nodes are known.
Result<void> check_nodes(Context& context, const config::Config& config);
/// Returns only the servers, without asking Slurm or ClusterShell.
Result<std::vector<fleet::Node>> known_servers(Context& context);
/// Returns the known nodes that a pattern names; if sharefs.yaml has no `nodes:`, any names are accepted.
Result<std::vector<fleet::Node>> chosen_of(const std::vector<fleet::Node>& known, const std::string& pattern);
/// Returns the nodes of sharefs.yaml that a pattern names, as chosen_of() does.
Result<std::vector<fleet::Node>> chosen_nodes(Context& context, const std::string& pattern);
/// As chosen_nodes(), without this machine.
Result<std::vector<fleet::Node>> other_nodes(Context& context, const std::string& pattern);
/// Returns the pattern of a command `NOUN VERB [NODES]`; without NODES it is `all`.
std::string named_nodes(const Arguments& arguments);

/// Returns `own` followed by fleet_options() without `--on`: for a command whose arguments are nodes.
std::vector<OptionSpec> with_fleet_options(std::vector<OptionSpec> own);

/// Takes the lock that allows only one change of many nodes from this machine at a time.
Result<plan::HostLock> lock_fleet(Context& context, const std::string& apart = {});
/// Returns the directory of the records of runs and of their temporary files.
Result<std::string> fleet_directory(Context& context);

/// Holds the cluster lease on all servers, which tells other administrators who is changing the cluster
/// (fleet/lease.hpp); the destructor gives it back. A server that does not answer is only warned about.
class LeaseOnServers {
 public:
  using Taken = Result<std::unique_ptr<LeaseOnServers>>;
  /// Takes the lease. `command` is the longest time of the change on one node. Error `busy` with the name of the
  /// holder.
  static Taken take(Context& context, const std::string& run, std::chrono::seconds command);
  LeaseOnServers(const LeaseOnServers&) = delete;
  LeaseOnServers& operator=(const LeaseOnServers&) = delete;
  ~LeaseOnServers();

 private:
  LeaseOnServers(Context& context, std::string run, std::vector<fleet::Node> servers)
      : m_context(context), m_run(std::move(run)), m_servers(std::move(servers)) {}
  Context& m_context;
  std::string m_run;
  std::vector<fleet::Node> m_servers;
};

/// Runs a shell script on nodes. `request` has everything but batches, engine and path. `in_order`: run in the order of
/// changes, until too many nodes fail. It leaves no record.
Result<fleet::Run> run_script(Context& context, const Arguments& arguments, const std::vector<fleet::Node>& nodes,
                              fleet::Request request, bool in_order, const std::string& what);

/// Returns the answers of a run. Error `interrupted` if it was interrupted, because answers are missing then.
Result<std::vector<fleet::Outcome>> all_answers(Result<fleet::Run> run);

/// Shows the answers of `nodes` to the question what has to be done, and asks for consent. Returns nullopt if the user
/// agrees; then the nodes with something to do are left in `nodes`. Otherwise returns the end of the command: its exit
/// code, because nothing has to be done or the user does not agree, or the error `failed`, because so many nodes cannot
/// do it that --max-failures forbids the change.
std::optional<Result<int>> agree_on_plans(Context& context, std::vector<fleet::Node>& nodes,
                                          const std::vector<fleet::Outcome>& answers, const fleet::MostFailures& most);
/// Prints the plans that nodes have answered to `--check`; equal plans once, with the names of their nodes.
void show_plans(Context& context, const std::vector<fleet::Outcome>& outcomes);

/// Prints one row per state and reason, then the findings of the nodes; the JSON document gets all of it.
void show_outcomes(Context& context, const std::vector<fleet::Outcome>& outcomes);

/// Reads `--max-failures`. Error `usage`.
Result<fleet::MostFailures> most_failures_of(const Arguments& arguments);
/// Reads `--node-deadline`; without it returns that of a change. Error `usage`.
Result<std::chrono::seconds> node_deadline(const Arguments& arguments);

/// Runs the command on the nodes of Context::flags.on.
Result<int> run_on_nodes(Context& context, const CommandSpec& spec, const Arguments& arguments);

/// Continues a run on the nodes where it failed or has not ended. An empty `id` is the newest run.
Result<int> resume_run(Context& context, std::string id);

/// Prints the runs of this machine, newest first.
Result<int> list_runs(Context& context);

/// Asks the nodes as root, without a record. Error `interrupted`.
Result<std::vector<fleet::Outcome>> ask_nodes(Context& context, const std::vector<fleet::Node>& nodes,
                                              const Argv& words,
                                              std::chrono::seconds deadline = std::chrono::seconds(60));

/// Runs a command on this machine for each of the nodes, over ssh (fleet::Asking::from_here), that changes something on
/// the node. Shows the plan for all nodes, asks for consent, and runs in the order of changes with a record.
/// `arguments` has the options of fleet_options(), as far as the command has them.
Result<int> change_from_here(Context& context, const Arguments& arguments, const std::vector<fleet::Node>& nodes,
                             const Argv& words);
/// The same for a command that changes nothing.
Result<std::vector<fleet::Outcome>> ask_from_here(Context& context, const Arguments& arguments,
                                                  const std::vector<fleet::Node>& nodes, const Argv& words);

// ---- parts of the above: the record of a change ----

/// Sets the engine of this name, or the first that is installed.
Result<void> choose_engine(Context& context, const std::string& name, fleet::Settings& settings);

/// Returns a name for a new record in `directory`, which sorts behind those that are there.
Result<std::string> new_record_id(Context& context, const std::string& directory);
/// Writes a new record of what is to be done in `directory`, and removes the oldest records.
Result<void> begin_record(Context& context, const std::string& directory, const std::string& id,
                          const fleet::Request& job);
/// Returns the rest of a run: the nodes on which it is not done, and the outcomes of the others. An empty `id` is set
/// to that of the newest run. Error `not_found` with a "did you mean".
Result<fleet::Request> load_record(Context& context, std::string& id);
/// CommandSpec::before_nodes of `undo RUN`: changes the job so that each node undoes the change that the run made
/// there.
Result<void> find_run(Context& context, const Arguments& arguments, fleet::Request& job);

} // namespace sharefs::cli
