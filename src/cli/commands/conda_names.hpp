#pragma once
// From the word ENV of a command line to where the environment lies.
#include "cli/context.hpp"
#include "conda/link.hpp"

namespace sharefs::cli {

/// The section `conda:` of sharefs.yaml. `config`: there is none, with `hint`.
Result<const config::Conda*> conda_section(
    Context& context,
    const std::string& hint = "add one: `conda: {store: /PATH/ON/SHARE, envs: [NAME], homes: {users: [NAME]}}`");

/// Who has conda where; for a user other than root the own place.
std::vector<conda::Homes> homes_of(const config::Conda& conda, const sys::Identity& self);

/// `usage`: by the rule for those of sharefs.yaml it is no name.
Result<void> check_environment_name(const std::string& name);

/// A name in the store of sharefs.yaml, or, with a slash, a path.
Result<std::string> environment_path(Context& context, const std::string& word);

/// The mounts of sharefs.yaml; whether this host serves them is asked for those above `path` only.
std::vector<conda::Share> shares_of(sys::System& system, const config::Config& config, const std::string& path);

/// SF301 if the path lies on a share of sharefs.yaml that is not mounted: nothing is looked at there.
Result<void> check_share(Context& context, const std::string& path);

} // namespace sharefs::cli
