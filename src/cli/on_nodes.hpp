#pragma once
// `--on NODES COMMAND`: the command runs on each of them by another machine's sharefs, and what they answer becomes one
// table, one JSON document and one exit code.
#include "cli/context.hpp"
#include "fleet/run.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sharefs::cli {

/// The options that all such commands have, besides those of every command.
const std::vector<OptionSpec>& fleet_options();

/// The nodes of sharefs.yaml, its servers among them, in their order. Error `config` or `usage`.
Result<std::vector<fleet::Node>> known_nodes(Context& context);
/// Those that a pattern names; without `nodes:` in sharefs.yaml any names will do.
Result<std::vector<fleet::Node>> chosen_nodes(Context& context, const std::string& pattern);

/// Does what was asked for on Context::flags.on.
Result<int> run_on_nodes(Context& context, const CommandSpec& spec, const Arguments& arguments);

/// Goes on with a run where it failed, was not tried or not waited for; "" is the newest that needs it.
Result<int> resume_run(Context& context, const std::string& id);

/// The runs of this machine, newest first.
Result<int> list_runs(Context& context);

/// A question to the nodes that leaves no record. `own_words`: further words for single nodes.
Result<std::vector<fleet::Outcome>> ask_nodes(Context& context, const std::vector<fleet::Node>& nodes,
                                              const Argv& words, bool as_root,
                                              const std::map<std::string, std::string>& own_words = {});

/// `words` are of a command that works on this machine for each of the nodes, by ssh (fleet::Asking::from_here), and
/// changes something there: the plan of all is shown and asked for, then it is done in order, with a record. Options as
/// fleet_options() has them, where the command has them.
Result<int> change_from_here(Context& context, const Arguments& arguments, const std::vector<fleet::Node>& nodes,
                             const Argv& words);
/// The same for words that change nothing.
Result<std::vector<fleet::Outcome>> ask_from_here(Context& context, const Arguments& arguments,
                                                  const std::vector<fleet::Node>& nodes, const Argv& words);

} // namespace sharefs::cli
