#pragma once
// Nodes hand on what they are to stage: each gets it from another one that has it, or is getting it at this moment, so
// that the server sends it once. Up to 16 nodes are a chain in the order of their list, more a tree in which each hands
// on to two.
#include "cli/fleet_job.hpp"
#include "conda/staging.hpp"

namespace sharefs::cli {

/// Names to each node those who hand on to it, by this option.
void tell_upstreams(fleet::Request& job);
inline constexpr OptionSpec k_upstreams_option{
    .names = "--upstreams", .value = "NODES", .help = "get it from the first of these that has it; `--on` says it"};

/// By this option; none without it. Errors `usage`.
Result<conda::Upstreams> upstreams_of(Context& context, const Arguments& arguments);
/// Notes in the answer of whom the image came; SF537: from the share, though others were asked.
conda::Fetched note_of_fetched(Context& context);

} // namespace sharefs::cli
