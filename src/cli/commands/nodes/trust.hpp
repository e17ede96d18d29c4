#pragma once
// Private to `nodes trust` and `nodes grant`.
#include "cli/on_nodes.hpp"
#include "fleet/grant.hpp"

#include <string>
#include <vector>

namespace sharefs::cli {

/// How ssh reaches these nodes, and the key that they shall let in, by `--key`. It works by the options of the fleet.
Result<fleet::Trust> begin_trust(Context& context, const Arguments& arguments, const std::vector<fleet::Node>& nodes);
/// The file that an option names, with the home in place of `~`; "" without it.
std::string given_path(Context& context, const Arguments& arguments, std::string_view option);

} // namespace sharefs::cli
