#pragma once
// Private to the files about many nodes: how the nodes are asked, and the record of a change.
#include "cli/on_nodes.hpp"

namespace sharefs::cli {

/// The default of --node-deadline: for a change. A question to a node then gets less.
inline constexpr std::string_view k_default_deadline = "10min";

/// Reads the options of the command line and finds an installed engine.
Result<fleet::Settings> settings_of(Context& context, const Arguments& arguments);
/// The same for work that needs ssh. Error `usage` for srun.
Result<fleet::Settings> settings_by_ssh(Context& context, const Arguments& arguments);
/// Sets the engine of this name, or the first that is installed.
Result<void> choose_engine(Context& context, const std::string& name, fleet::Settings& settings);
/// Returns the command line without the options that only this machine needs: those of the fleet, of consent, and of
/// the output.
Argv words_for_nodes(const Argv& argv);
/// Runs the request, with progress on the terminal; its files are made in `directory`.
Result<fleet::Run> run_with_progress(Context& context, const std::string& directory, const fleet::Request& request,
                                     const std::string& what);
/// Runs the request without a record: its files are removed after the answer.
Result<fleet::Run> ask_once(Context& context, fleet::Request request, const std::string& what);
/// Asks the nodes all at once, without a record, with the deadline of a check; `further` follows the arguments.
Result<fleet::Run> ask(Context& context, fleet::Request request, const Argv& further = {"--json"});

/// Writes a new record of what is to be done in `directory`, and removes the oldest records.
Result<void> begin_record(Context& context, const std::string& directory, const std::string& id,
                          const fleet::Request& job);
/// Returns the rest of a run: the nodes on which it is not done, and the outcomes of the others. An empty `id` is set
/// to that of the newest run. Error `not_found` with a "did you mean".
Result<fleet::Request> load_record(Context& context, std::string& id);
/// Prepares `undo RUN`: changes the job so that each node undoes the change that the run made there.
Result<void> find_run(Context& context, const Arguments& arguments, fleet::Request& job);

} // namespace sharefs::cli
