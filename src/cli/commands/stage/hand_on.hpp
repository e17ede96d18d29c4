#pragma once
// Chains of nodes for staging: each node gets the files from another one that has them, or is receiving them at the
// moment, so that the server sends them only once. Up to 16 nodes form a chain in the order of their list; more form a
// tree in which each node serves two.
#include "cli/on_nodes.hpp"
#include "conda/staging.hpp"

namespace sharefs::cli {

/// Adds this option to the command of each node: the nodes from which it may get the files.
void assign_upstreams(fleet::Request& job);
inline constexpr OptionSpec k_upstreams_option{
    .names = "--upstreams", .value = "NODES", .help = "get it from the first of these that has it; `--on` says it"};

/// Reads this option; without it there are no upstreams. Error `usage`.
Result<conda::Upstreams> upstreams_of(Context& context, const Arguments& arguments);
/// Notes in the answer from which node the image came; SF537: it came from the share, although nodes were asked.
conda::Fetched note_of_fetched(Context& context);

} // namespace sharefs::cli
