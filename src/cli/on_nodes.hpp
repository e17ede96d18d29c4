#pragma once
// `--on NODES COMMAND`: the command runs on each of them by another machine's sharefs, and what they answer becomes one
// table, one JSON document and one exit code.
#include "cli/context.hpp"
#include "fleet/run.hpp"
#include "plan/host_lock.hpp"

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace sharefs::cli {

/// The options that all such commands have, besides those of every command.
const std::vector<OptionSpec>& fleet_options();

/// The nodes of sharefs.yaml, its servers among them, in their order. Error `config` or `usage`.
Result<std::vector<fleet::Node>> known_nodes(Context& context);
/// Its servers alone, without a question to Slurm or ClusterShell.
Result<std::vector<fleet::Node>> known_servers(Context& context);
/// Those of known_nodes() that a pattern names; without `nodes:` in sharefs.yaml any names will do.
Result<std::vector<fleet::Node>> chosen_of(const std::vector<fleet::Node>& known, const std::string& pattern);
Result<std::vector<fleet::Node>> chosen_nodes(Context& context, const std::string& pattern);
/// The same without this machine.
Result<std::vector<fleet::Node>> other_nodes(Context& context, const std::string& pattern);
/// The pattern of a command `NOUN VERB [NODES]`: without one all.
std::string named_nodes(const Arguments& arguments);

/// fleet_options() without `--on`, behind options of its own: for a command that is about nodes.
std::vector<OptionSpec> with_fleet_options(std::vector<OptionSpec> own);

/// The lock of whoever changes many nodes from this machine.
Result<plan::HostLock> lock_fleet(Context& context, const std::string& apart = {});
/// Where the records of runs are, and what they need while they go on.
Result<std::string> fleet_directory(Context& context);

/// A script of ours on nodes: `request` with all but batches, engine and path. `in_order`: in the order of changes,
/// until too many fail. It leaves no record.
Result<fleet::Run> run_script(Context& context, const Arguments& arguments, const std::vector<fleet::Node>& nodes,
                              fleet::Request request, bool in_order, const std::string& what);

/// Error `interrupted` where they are not all there.
Result<std::vector<fleet::Outcome>> all_answers(Result<fleet::Run> run);

/// The answers to a question what is to be done are shown. The pending nodes, once a person has agreed to them; a
/// number is the exit code with which the command ends here, since nothing is to be done, or shall be. Error `failed`
/// where so many cannot that --max-failures forbids to begin.
using Pending = std::variant<int, std::vector<fleet::Node>>;
Result<Pending> agree_on_plans(Context& context, const std::vector<fleet::Node>& nodes,
                               const std::vector<fleet::Outcome>& looked, const fleet::MostFailures& most);
Result<fleet::MostFailures> most_failures_of(const Arguments& arguments);

/// Does what was asked for on Context::flags.on.
Result<int> run_on_nodes(Context& context, const CommandSpec& spec, const Arguments& arguments);

/// Goes on with a run where it failed, was not tried or not waited for; "" is the newest that needs it.
Result<int> resume_run(Context& context, std::string id);

/// The runs of this machine, newest first.
Result<int> list_runs(Context& context);

/// A question to the nodes that leaves no record. Error `interrupted`.
Result<std::vector<fleet::Outcome>> ask_nodes(Context& context, const std::vector<fleet::Node>& nodes,
                                              const Argv& words, bool as_root,
                                              std::chrono::seconds deadline = std::chrono::seconds(60));

/// `words` are of a command that works on this machine for each of the nodes, by ssh (fleet::Asking::from_here), and
/// changes something there: the plan of all is shown and asked for, then it is done in order, with a record. Options as
/// fleet_options() has them, where the command has them.
Result<int> change_from_here(Context& context, const Arguments& arguments, const std::vector<fleet::Node>& nodes,
                             const Argv& words);
/// The same for words that change nothing.
Result<std::vector<fleet::Outcome>> ask_from_here(Context& context, const Arguments& arguments,
                                                  const std::vector<fleet::Node>& nodes, const Argv& words);

} // namespace sharefs::cli
