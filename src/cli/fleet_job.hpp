#pragma once
// Private to the files about many nodes: what is to be done on them, and how they are asked.
#include "cli/on_nodes.hpp"

namespace sharefs::cli {

/// What is to be done, and all that a later process needs to go on with it.
struct FleetJob {
  Argv words; ///< of the command, without --json
  bool changes = false;
  bool from_here = false;    ///< for the nodes, on this machine
  bool servers_last = false; ///< clients stand on what it takes back
  bool at_once = false;      ///< no node is a canary, and no failure ends it: the nodes wait for one another
  std::vector<fleet::Node> nodes;
  std::map<std::string, std::string> own_words = {};
};

using FleetSettings = fleet::Settings;

/// The options of the command line, and the engine that is there.
Result<FleetSettings> settings_of(Context& context, const Arguments& arguments);
/// For what needs ssh: error `usage` for srun.
Result<FleetSettings> settings_by_ssh(Context& context, const Arguments& arguments);
/// The engine of this name, or the first that is there.
Result<void> choose_engine(Context& context, const std::string& name, FleetSettings& settings);
/// The command line without what only this machine needs: options of the fleet, consent, the form of the output.
Argv words_for_nodes(const Argv& argv);
/// `further` stand behind the job's words. `in_order`: as changes are done, else all at once.
fleet::Request request_of(const FleetJob& job, const FleetSettings& settings, const Argv& further, bool in_order);
/// Runs it with progress on the terminal; its files are made in `directory`.
Result<fleet::Run> run_with_progress(Context& context, const std::string& directory, const fleet::Request& request,
                                     const std::string& what);
/// Asks without a record that outlives the answer.
Result<fleet::Run> ask_once(Context& context, const fleet::Request& request, const std::string& what);

/// A name that sorts by time.
std::string new_run_id();
/// A new record of what is to be done, in `directory`; those beyond the newest go.
Result<void> begin_record(Context& context, const std::string& directory, const std::string& id, const FleetJob& job,
                          const FleetSettings& settings);
/// What is left of a run: its job with the nodes on which it is not done, and what is known of the others.
struct LeftOfRun {
  std::string id;
  FleetJob job;
  FleetSettings settings;
  std::vector<fleet::Outcome> before;
};
/// "" is the newest run. Error `not_found` with a "did you mean".
Result<LeftOfRun> load_record(Context& context, const std::string& id);
/// `undo RUN`: makes of the job that of taking back, on each node, the change that the run made there.
Result<void> look_up_run(Context& context, const Arguments& arguments, FleetJob& job);

} // namespace sharefs::cli
