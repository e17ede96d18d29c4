#pragma once
// Private to the files about many nodes: how they are asked, and the record of a change.
#include "cli/on_nodes.hpp"

namespace sharefs::cli {

/// The options of the command line, and the engine that is there.
Result<fleet::Settings> settings_of(Context& context, const Arguments& arguments);
/// For what needs ssh: error `usage` for srun.
Result<fleet::Settings> settings_by_ssh(Context& context, const Arguments& arguments);
/// The engine of this name, or the first that is there.
Result<void> choose_engine(Context& context, const std::string& name, fleet::Settings& settings);
/// The command line without what only this machine needs: options of the fleet, consent, the form of the output.
Argv words_for_nodes(const Argv& argv);
/// The same nodes, all at once, by when a look has ended; `further` stand behind its words.
fleet::Request question(fleet::Request request, const Argv& further);
/// Runs it with progress on the terminal; its files are made in `directory`.
Result<fleet::Run> run_with_progress(Context& context, const std::string& directory, const fleet::Request& request,
                                     const std::string& what);
/// Asks without a record that outlives the answer.
Result<fleet::Run> ask_once(Context& context, const fleet::Request& request, const std::string& what);

/// A name that sorts by time.
std::string new_run_id();
/// A new record of what is to be done, in `directory`; those beyond the newest go.
Result<void> begin_record(Context& context, const std::string& directory, const std::string& id,
                          const fleet::Request& job);
/// What is left of a run: the nodes on which it is not done, and what is known of the others. An empty `id` becomes the
/// newest run's. Error `not_found` with a "did you mean".
Result<fleet::Request> load_record(Context& context, std::string& id);
/// `undo RUN`: makes of the job that of taking back, on each node, the change that the run made there.
Result<void> look_up_run(Context& context, const Arguments& arguments, fleet::Request& job);

} // namespace sharefs::cli
