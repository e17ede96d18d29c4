#pragma once
// Nodes hand on what they are to stage: each gets it from another one that has it, or is getting it at this moment, so
// that the server sends it once. The nodes are a tree in the order of their list, in which each hands on to two.
#include "cli/fleet_job.hpp"
#include "conda/staging.hpp"

namespace sharefs::cli {

/// What a node is told of the others, by the options below.
void tell_places(fleet::Request& job);
inline constexpr OptionSpec k_among_option{
    .names = "--among",
    .value = "NODES",
    .help = "with --place: get it from those of these nodes that are before this one"};
inline constexpr OptionSpec k_place_option{
    .names = "--place", .value = "N", .help = "of this node among them, from 0 on"};

/// The numbers of those who hand on to the node of this number, nearest first; empty: it gets it from the share. Pure.
std::vector<std::size_t> before_in_tree(std::size_t place);
/// By these options; none without them. Errors `usage`.
Result<conda::Upstreams> upstreams_of(Context& context, const Arguments& arguments);
/// Notes in the answer of whom the image came; SF537: from the share, though others were asked.
conda::Fetched note_of_fetched(Context& context);

} // namespace sharefs::cli
