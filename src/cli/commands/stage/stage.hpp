#pragma once
#include "cli/fleet_job.hpp"
#include "conda/homes.hpp"
#include "tree/survey.hpp"

#include <set>

namespace sharefs::cli {

/// Where root's copies lie on this host: of environments, and of directories.
std::set<std::string> stage_directories(const config::Config& config);
/// Of directories: those of root, and of this user. The configuration has been read.
std::set<std::string> staged_paths_directories(Context& context);

/// A word of the command line that is no name of an environment.
bool is_path(const std::string& word);
/// Users of `conda.homes`, who may read a share whose server refuses root.
std::vector<std::string> readers(Context& context);
/// What another machine has found out about a directory (`--packed`). Error `usage`.
Result<tree::Survey> survey_for_all(const std::string& text);
/// Says what is done first, and asks. False: it is only looked at. Error `interrupted`: no.
Result<bool> agree_to_pack(Context& context, const std::string& path, const tree::Survey& survey);
/// CommandSpec::before_nodes of `stage`.
Result<void> tell_nodes_what_is_staged(Context& context, const Arguments& arguments, fleet::Request& job);

Result<int> list_staged(Context& context);
/// `word`: a path, or the beginning of the hash of a copy.
Result<int> drop_staged(Context& context, const std::string& word);

} // namespace sharefs::cli
