#pragma once
#include "cli/on_nodes.hpp"
#include "conda/staging.hpp"
#include "tree/survey.hpp"

#include <set>

namespace sharefs::cli {

/// Returns the directories of root's copies on this host: of environments and of directories.
std::set<std::string> stage_directories(const config::Config& config);
/// Returns the directories for copies of directories: root's, and this user's. The configuration must have been read.
std::set<std::string> staged_paths_directories(Context& context);

/// True for a word of the command line that is a path and not the name of an environment.
bool is_path(const std::string& word);
/// Returns the users of `conda.homes`, who may read a share if its server refuses root.
std::vector<std::string> readers(Context& context);
/// Reads the survey of a directory that another machine has made (`--packed`). Error `usage`.
Result<tree::Survey> survey_for_all(const std::string& text);
/// Prints the work that comes first, and asks for consent. Returns false with --check or --dry-run. Error `interrupted`
/// if the answer is no.
Result<bool> agree_to_pack(Context& context, const std::string& path, const tree::Survey& survey);
/// CommandSpec::before_nodes of `stage`.
Result<void> survey_for_nodes(Context& context, const Arguments& arguments, fleet::Request& job);

// ---- hand_on.cpp: chains of nodes ----
// Each node gets the files from another one that has them, or is receiving them at the moment, so that the server sends
// them only once. Up to 16 nodes form a chain in the order of their list; more form a tree in which each node serves
// two.

/// Adds this option to the command of each node: the nodes from which it may get the files.
void assign_upstreams(fleet::Request& job);
inline constexpr OptionSpec k_upstreams_option{
    .names = "--upstreams", .value = "NODES", .help = "get it from the first of these that has it; `--on` says it"};

/// Reads this option; without it there are no upstreams. Error `usage`.
Result<conda::Upstreams> upstreams_of(Context& context, const Arguments& arguments);
/// Notes in the answer from which node the image came; SF537: it came from the share, although nodes were asked.
conda::Fetched note_of_fetched(Context& context);

} // namespace sharefs::cli
