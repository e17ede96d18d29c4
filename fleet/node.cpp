#include "fleet/node.hpp"

#include "base/source.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "sys/identity/identity.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <unordered_map>

namespace sharefs::fleet {

namespace {

std::vector<std::string> names_of(const std::vector<Node>& nodes, std::string_view group = {}) {
  std::vector<std::string> names;
  for (const auto& node : nodes)
    if (group.empty() || node.in(group))
      names.push_back(node.name);
  return names;
}

/// Returns all groups with the names of their nodes, in alphabetical order.
std::map<std::string, std::vector<std::string>> groups_of(const std::vector<Node>& nodes) {
  std::map<std::string, std::vector<std::string>> groups;
  for (const auto& node : nodes)
    for (const auto& group : node.groups)
      groups[group].push_back(node.name);
  return groups;
}

std::vector<std::string> group_names(const std::vector<Node>& nodes) {
  std::vector<std::string> names{std::string(k_all), std::string(k_servers), std::string(k_clients)};
  for (const auto& [name, members] : groups_of(nodes))
    if (std::ranges::find(names, name) == names.end())
      names.push_back(name);
  return names;
}

/// True for one name or address, and for one name with and without its domain, as sys::is_this_host() takes it; but not
/// if such names have different addresses.
bool are_one_machine(const Node& node, const Node& server) {
  if (is_same_host(node.name, server.name) || is_same_host(node.name, server.address))
    return true;
  if (!node.address.empty() && !server.address.empty())
    return is_same_host(node.address, server.address);
  const auto begins_with = [](const std::string& whole, const std::string& name) {
    return name.find('.') == std::string::npos && !sys::address_bytes(whole) &&
           lower_case(whole).starts_with(lower_case(name) + ".");
  };
  return begins_with(node.name, server.name) || begins_with(server.name, node.name);
}

using Nodes = std::vector<Node>;

Result<std::string> as_names(const Nodes& nodes) {
  return join(names_of(nodes), "\n") + (nodes.empty() ? "" : "\n");
}

Result<std::string> as_openmpi(const Nodes& nodes) {
  std::string text;
  for (const auto& node : nodes)
    text += node.slots ? fmt::format("{} slots={}\n", node.name, *node.slots) : node.name + "\n";
  return text;
}

Result<std::string> as_hostfile(const Nodes& nodes) {
  const auto unknown = std::ranges::find_if(nodes, [](const Node& node) { return !node.slots; });
  if (unknown == nodes.end())
    return as_openmpi(nodes);
  return fail(ErrorCode::usage,
              fmt::format("the slots of {} are not known, and DeepSpeed needs them on each line", unknown->name),
              fmt::format("write `nodes: {{list: [{{name: {}, slots: 8}}]}}` in sharefs.yaml, or use --slots N",
                          unknown->name));
}

Result<std::string> as_ranges(const Nodes& nodes) {
  return fold(names_of(nodes)) + "\n";
}

Result<std::string> as_groups(const Nodes& nodes) {
  std::string text = fmt::format("sharefs:\n  all: '{}'\n", fold(names_of(nodes)));
  for (const auto& [group, names] : groups_of(nodes))
    text += fmt::format("  {}: '{}'\n", group, fold(names));
  return text;
}

Result<std::string> as_inventory(const Nodes& nodes) {
  std::string text;
  for (const auto& node : nodes) {
    text += node.name;
    if (!node.address.empty() && node.address != node.name)
      text += " ansible_host=" + node.address;
    if (!node.user.empty())
      text += " ansible_user=" + node.user;
    text += "\n";
  }
  for (const auto& [group, names] : groups_of(nodes)) {
    auto title = group;
    std::ranges::replace(title, '-', '_'); // the group names of Ansible may have no other character
    text += fmt::format("\n[{}]\n{}\n", title, join(names, "\n"));
  }
  return text;
}

} // namespace

bool Node::in(std::string_view group) const {
  return group == k_all || std::ranges::find(groups, group) != groups.end();
}

Group groups_among(const std::vector<Node>& nodes) {
  return [&nodes](const std::string& name) -> Result<std::vector<std::string>> {
    auto members = names_of(nodes, name == k_every_node ? k_all : std::string_view(name));
    if (!members.empty())
      return members;
    const auto groups = group_names(nodes);
    if (std::ranges::find(groups, name) != groups.end() || name == k_every_node)
      return members;
    return fail(ErrorCode::usage, fmt::format("no group is called `{}`", name),
                did_you_mean_hint(name, groups, "there are " + join(groups, ", ")));
  };
}

Result<std::string> format_nodes(const std::vector<Node>& nodes, const std::string& format) {
  using Format = Result<std::string> (*)(const Nodes&);
  const std::vector<std::pair<std::string, Format>> formats{{"names", as_names},         {"hostfile", as_hostfile},
                                                            {"openmpi", as_openmpi},     {"slurm", as_ranges},
                                                            {"clustershell", as_groups}, {"ansible", as_inventory}};
  std::vector<std::string> known;
  for (const auto& [name, write] : formats) {
    if (name == format)
      return write(nodes);
    known.push_back(name);
  }
  return fail(ErrorCode::usage, fmt::format("option `--format` does not know `{}`", format),
              format == "json" ? "`--json` prints it"
                               : did_you_mean_hint(format, known, "one of " + join(known, ", ")));
}

Result<std::vector<Node>> merge(std::vector<Node> listed, const std::vector<Node>& servers) {
  std::unordered_map<std::string, std::size_t> known, addresses;
  for (std::size_t i = 0; i < listed.size(); ++i) {
    const auto& one = listed[i];
    if (const auto [first, fresh] = known.try_emplace(lower_case(one.name), i); !fresh)
      return fail(ErrorCode::config, fmt::format("{}: the node {} comes twice", one.origin.text(), one.name),
                  fmt::format("it stands at {} already; keep one of them", listed[first->second].origin.text()));
    if (const auto [first, fresh] = addresses.try_emplace(lower_case(one.address.empty() ? one.name : one.address), i);
        !fresh)
      return fail(
          ErrorCode::config,
          fmt::format("{}: the node {} has the address of {}", one.origin.text(), one.name, listed[first->second].name),
          fmt::format("that stands at {}; give each its own, or keep one of them",
                      listed[first->second].origin.text()));
  }
  for (const auto& server : servers) {
    const auto is_server = [&](const Node& node) { return are_one_machine(node, server); };
    const auto same = std::ranges::find_if(listed, is_server);
    if (same != listed.end())
      if (const auto second = std::find_if(same + 1, listed.end(), is_server); second != listed.end())
        return fail(ErrorCode::config,
                    fmt::format("{}: the node {} is the server {}, as {} is", second->origin.text(), second->name,
                                server.name, same->name),
                    fmt::format("that stands at {}; keep one of them", same->origin.text()));
    if (same == listed.end()) {
      listed.push_back(server);
    } else {
      same->groups.insert(same->groups.begin(), server.groups.begin(), server.groups.end());
      if (same->address.empty() && same->name == server.name)
        same->address = server.address;
    }
  }
  for (auto& node : listed)
    if (!node.in(k_servers))
      node.groups.emplace(node.groups.begin(), k_clients);
  return listed;
}

Result<std::vector<Node>> select(const std::vector<Node>& nodes, const std::string& pattern) {
  const auto known = names_of(nodes);
  const auto words = group_names(nodes);
  const auto is_group = [&](const std::string& word) { return contains(words, word) && !contains(known, word); };
  TRY_ASSIGN(const auto wanted, expand_words(pattern, is_group, groups_among(nodes)));
  std::unordered_map<std::string, const Node*> by_name;
  for (const auto& node : nodes)
    by_name.emplace(node.name, &node);
  std::vector<Node> chosen;
  for (const auto& name : wanted) {
    const auto found = by_name.find(name);
    if (found == by_name.end()) {
      auto all = known;
      all.insert(all.end(), words.begin(), words.end());
      return fail(
          ErrorCode::usage, fmt::format("no node is called `{}`", name),
          did_you_mean_hint(name, all, "`sharefs nodes list` shows them; add it under `nodes:` of sharefs.yaml"));
    }
    chosen.push_back(*found->second);
  }
  return chosen;
}

} // namespace sharefs::fleet
