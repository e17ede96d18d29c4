#pragma once
// Private to `nodes trust` and `nodes grant`.
#include "cli/on_nodes.hpp"
#include "fleet/grant.hpp"

#include <string>
#include <vector>

namespace sharefs::cli {

/// Finds out how ssh reaches these nodes, and the key of `--key` that they shall accept. Uses the options of the fleet.
Result<fleet::Trust> begin_trust(Context& context, const Arguments& arguments, const std::vector<fleet::Node>& nodes);
/// Returns the path that an option gives, with `~` replaced by the home; "" without the option.
std::string given_path(Context& context, const Arguments& arguments, std::string_view option);

} // namespace sharefs::cli
