#pragma once
// What `conda link` and `conda unlink` are to do, from sharefs.yaml and the arguments.
#include "cli/context.hpp"
#include "conda/link.hpp"

namespace sharefs::cli {

/// sharefs.yaml has links to be made, and homes for them.
bool has_links(const config::Conda& conda);

/// What the room is asked to do, checked; without `shares`. Errors: `config` (nothing to link by sharefs.yaml), `usage`
/// (names that sharefs.yaml does not know, with "did you mean"), `permission` (another user's home without root).
Result<conda::LinkRequest> conda_link_request(const config::Config& config, const Arguments& arguments,
                                              const sys::Identity& self, conda::LinkRequest::Verb verb);

/// [{name, conda, state, links}]
nlohmann::ordered_json homes_json(const conda::LinkState& state, const conda::LinkRequest& request);

} // namespace sharefs::cli
