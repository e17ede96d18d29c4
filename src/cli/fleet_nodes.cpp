// The nodes of sharefs.yaml, and those that a command line names.
#include "cli/on_nodes.hpp"

#include "base/try.hpp"
#include "fleet/sources.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::cli {

namespace {

/// Returns the sources of nodes in sharefs.yaml, without those for which another program must be asked.
fleet::Sources sources_of(const config::Config& config) {
  fleet::Sources sources;
  sources.origin = {config.file};
  for (const auto& one : config.nodes.list)
    sources.list.push_back({one.name, one.address, one.user, one.slots, {}, one.origin});
  sources.hostfile = config.nodes.hostfile;
  for (const auto& group : config.nodes.groups)
    sources.groups.push_back({group.name, group.nodes, group.origin});
  for (const auto& server : config.servers)
    sources.servers.push_back({server.name, server.address, {}, {}, {std::string(fleet::k_servers)}, server.origin});
  return sources;
}

} // namespace

Result<std::vector<fleet::Node>> known_nodes(Context& context) {
  TRY_ASSIGN(const auto config, context.config());
  auto sources = sources_of(*config);
  sources.slurm = config->nodes.slurm;
  sources.clustershell = config->nodes.clustershell;
  return fleet::read_nodes(context.system, sources);
}

Result<void> check_nodes(Context& context, const config::Config& config) {
  auto sources = sources_of(config);
  const bool knows_file = !sources.hostfile.empty() && context.system.files().read_trusted(sources.hostfile);
  if (!config.nodes.slurm.empty() || !config.nodes.clustershell.empty() || (!sources.hostfile.empty() && !knows_file))
    sources.groups.clear();
  if (!knows_file)
    sources.hostfile.clear();
  TRY(fleet::read_nodes(context.system, sources));
  return {};
}

Result<std::vector<fleet::Node>> known_servers(Context& context) {
  TRY_ASSIGN(const auto config, context.config());
  TRY_ASSIGN(auto nodes, fleet::read_nodes(context.system, sources_of(*config)));
  std::erase_if(nodes, [](const fleet::Node& node) { return !node.in(fleet::k_servers); });
  return nodes;
}

Result<std::vector<fleet::Node>> chosen_nodes(Context& context, const std::string& pattern) {
  TRY_ASSIGN(const auto nodes, known_nodes(context));
  return chosen_of(nodes, pattern);
}

Result<std::vector<fleet::Node>> chosen_of(const std::vector<fleet::Node>& known, const std::string& pattern) {
  const bool only_servers =
      std::ranges::all_of(known, [](const fleet::Node& node) { return node.in(fleet::k_servers); });
  auto chosen = fleet::select(known, pattern);
  if (chosen && chosen->empty())
    return fail(ErrorCode::usage, fmt::format("`{}` names no node", pattern),
                only_servers ? "write the machines of the cluster under `nodes:` of sharefs.yaml"
                             : "`sharefs nodes list` shows the machines and their groups");
  const auto names = only_servers ? fleet::expand(pattern) : fail(ErrorCode::usage, "");
  if (chosen || !names)
    return chosen;
  std::vector<fleet::Node> free; // there is no list of nodes to compare the names with
  for (const auto& name : *names) {
    const auto found = std::ranges::find(known, name, &fleet::Node::name);
    free.push_back(found != known.end() ? *found
                                        : fleet::Node{.name = name, .groups = {std::string(fleet::k_clients)}});
  }
  return free;
}

std::string named_nodes(const Arguments& arguments) {
  return arguments.positional.empty() ? std::string(fleet::k_all) : arguments.positional.front();
}

Result<std::vector<fleet::Node>> other_nodes(Context& context, const std::string& pattern) {
  TRY_ASSIGN(auto nodes, chosen_nodes(context, pattern));
  const auto identity = context.system.identity();
  std::erase_if(nodes, [&](const fleet::Node& node) { return fleet::is_here(identity, node); });
  return nodes;
}

} // namespace sharefs::cli
