#pragma once
// From the word ENV of a command line to where the environment lies.
#include "cli/context.hpp"
#include "conda/change.hpp"
#include "conda/link.hpp"
#include "conda/make_image.hpp"

#include <functional>

namespace sharefs::cli {

/// The section `conda:` of sharefs.yaml. `config`: there is none, with `hint`.
Result<const config::Conda*> conda_section(
    Context& context,
    const std::string& hint = "add one: `conda: {store: /PATH/ON/SHARE, envs: [NAME], homes: {users: [NAME]}}`");

/// Who has conda where; for a user other than root the own place.
std::vector<conda::Homes> homes_of(const config::Conda& conda, const sys::Identity& self);

/// `usage`: by the rule for those of sharefs.yaml it is no name.
Result<void> check_environment_name(const std::string& name);

/// The word is the name of a directory in the working directory, which `./WORD` would name.
bool is_directory_here(Context& context, const std::string& word);

/// A name in the store of sharefs.yaml, or, with a slash, a path.
Result<std::string> environment_path(Context& context, const std::string& word);

/// The mounts of sharefs.yaml; whether this host serves them is asked for those above `path` that are not mounted.
std::vector<conda::Share> shares_of(sys::System& system, const config::Config& config, const std::string& path);

/// SF301 if the path lies on a share of sharefs.yaml that is not mounted: nothing is looked at there.
Result<void> check_share(Context& context, const std::string& path);

struct StoreName {
  std::string store, name;
};
/// ENV of a command line: a name in the store of sharefs.yaml, or a path that leads to one there. `usage`, `config`.
Result<StoreName> store_name(Context& context, const std::string& word);

/// `--limit`: what a copy may take of the network or the disk that others use, too.
inline constexpr OptionSpec k_limit_option{
    .names = "--limit", .value = "SIZE", .help = "copy no more than this in a second: 200M"};
/// Its value; 0: none was given. `usage`: it is no size.
Result<std::uint64_t> limit_of(const Arguments& arguments);

/// A command for one environment after the other, each under its name. The exit code of all: 3 where something is
/// pending, 4 where some could not; Ctrl-C ends it. `usage` for --json, whose document is of one environment.
Result<int> for_each_environment(Context& context, const std::vector<std::string>& names,
                                 const std::function<Result<int>(const std::string& name)>& work);

/// "2026-11-22 10:15", UTC.
std::string format_time(std::int64_t seconds);

/// The number behind `--to`, `N`: `usage` for anything else.
Result<unsigned> generation_argument(const std::string& word);

/// How this command names itself to those who wait for the lease of an environment, and how long it waits itself.
conda::LeaseSettings lease_wish(const Context& context);
/// What sharefs.yaml says about the images of an environment.
conda::ImageSettings image_wish(Context& context, const std::string& environment);

} // namespace sharefs::cli
