#pragma once
// The work of `conda link` and `conda unlink`, from sharefs.yaml and the arguments.
#include "cli/context.hpp"
#include "conda/link.hpp"

namespace sharefs::cli {

/// True if sharefs.yaml has environments to link and homes for the links.
bool has_links(const config::Conda& conda);

/// Makes the checked request to the conda room; without `shares`. Errors: `config` (sharefs.yaml has nothing to link),
/// `usage` (unknown names, with "did you mean"), `permission` (another user's home without root).
Result<conda::LinkRequest> conda_link_request(const config::Config& config, const Arguments& arguments,
                                              const sys::Identity& self, conda::LinkRequest::Verb verb);

/// Returns [{name, conda, state, links}].
Json homes_json(const conda::LinkState& state, const conda::LinkRequest& request);

} // namespace sharefs::cli
