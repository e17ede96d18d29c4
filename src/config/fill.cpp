#include "config/fill.hpp"

#include "base/text.hpp"
#include "config/table.hpp"
#include "config/values.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>

namespace sharefs::config {

namespace {

using Kind = Node::Kind;

constexpr std::size_t k_many_servers = 2000; ///< beyond it no "did you mean": every mount would be compared with all

/// The elements of a list, or the single value of a path_list.
std::vector<std::string> texts(const Node& node) {
  if (node.is(Kind::scalar))
    return {node.text};
  std::vector<std::string> out;
  for (const auto& item : node.items)
    out.push_back(item.text);
  return out;
}

/// A default of the table as text; it stands there as in a file, maybe in quotes.
std::string fallback_of(const Key& key) {
  auto text = key.fallback;
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"')
    text = text.substr(1, text.size() - 2);
  return std::string(text);
}

/// The value of the key in its mapping, or its default from the table.
std::string text_of(const Node& mapping, std::string_view key_name) {
  const Key& key = key_named(key_name);
  const Node* node = mapping.find(last_name(key));
  if (node != nullptr && node->is(Kind::scalar))
    return node->text;
  return fallback_of(key);
}

/// As text_of for the keys whose default is an empty list or one element.
std::vector<std::string> texts_of(const Node& mapping, std::string_view key_name) {
  const Key& key = key_named(key_name);
  const Node* node = mapping.find(last_name(key));
  if (node != nullptr && !node->is(Kind::null))
    return texts(*node);
  if (key.fallback.empty() || key.fallback == "[]")
    return {};
  return {fallback_of(key)};
}

const std::vector<Entry>& entries_of(const Node& mapping, std::string_view name) {
  static const std::vector<Entry> k_none;
  const Node* node = mapping.find(name);
  return node == nullptr ? k_none : node->entries;
}

const std::vector<Node>& items_of(const Node& mapping, std::string_view name) {
  static const std::vector<Node> k_none;
  const Node* node = mapping.find(name);
  return node == nullptr ? k_none : node->items;
}

class Filler {
 public:
  Filler(const Source& source, FirstProblem& problem) : m_source(source), m_problem(problem) {}

  Config config(const Node& root) {
    Config config;
    config.file = m_source.file();
    for (const auto& entry : entries_of(root, "servers"))
      config.servers.push_back(server(entry));
    for (const auto& server : config.servers)
      m_servers.emplace(server.name, server.address);
    for (const auto& entry : entries_of(root, "mounts"))
      config.mounts.push_back(mount(entry));
    if (const Node* node = root.find("conda"); node != nullptr && node->is(Kind::mapping))
      config.conda = conda(*node, root);
    if (const Node* node = root.find("caches"))
      config.caches = caches(*node);
    if (const Node* node = root.find("nodes"))
      config.nodes.hostfile = text_of(*node, "nodes.hostfile");
    return config;
  }

 private:
  Server server(const Entry& entry) {
    Server server;
    server.name = entry.name;
    server.origin = m_source.origin(entry.place);
    server.address = text_of(entry.value, "servers.*.address");
    if (server.address.empty())
      server.address = entry.name;
    std::map<std::string, int> paths;
    for (const auto& item : items_of(entry.value, "exports")) {
      server.exports.push_back(one_export(item, entry.name));
      const auto& path = server.exports.back().path;
      const auto [first, fresh] = paths.try_emplace(path, item.place.line);
      if (!fresh && !path.empty())
        m_problem.add({value_place(item, "path"),
                       fmt::format("`{}` is exported twice by `{}`", shown(path), shown(entry.name)),
                       fmt::format("line {} exports it already; list all clients there", first->second)});
    }
    return server;
  }

  Export one_export(const Node& node, const std::string& server) {
    Export result;
    result.path = text_of(node, "servers.*.exports[].path");
    result.name = server + ":" + result.path;
    result.clients = texts_of(node, "servers.*.exports[].clients");
    result.options = texts_of(node, "servers.*.exports[].options");
    result.access = access(node);
    result.origin = m_source.origin(node.place);
    return result;
  }

  static Access access(const Node& parent) {
    const Node* node = parent.find("access");
    Access access;
    if (node != nullptr && node->is(Kind::mapping)) {
      access.kind = Access::Kind::group;
      access.group = text_of(*node, "servers.*.exports[].access.group");
      const auto mode = text_of(*node, "servers.*.exports[].access.mode");
      access.mode = parse_mode(mode).value_or(access.mode); // a wrong one is a problem already
    } else if (text_of(parent, "servers.*.exports[].access") == "open") {
      access.kind = Access::Kind::open;
    }
    return access;
  }

  Mount mount(const Entry& entry) {
    Mount mount;
    mount.name = entry.name;
    mount.origin = m_source.origin(entry.place);
    mount.at = text_of(entry.value, "mounts.*.at");
    mount.profile = text_of(entry.value, "mounts.*.profile");
    mount.options = texts_of(entry.value, "mounts.*.options");
    mount.boot = text_of(entry.value, "mounts.*.boot");
    if (auto remote = parse_remote(text_of(entry.value, "mounts.*.from"))) {
      mount.server = std::move(remote->server);
      mount.path = std::move(remote->path);
      const auto known = m_servers.find(mount.server);
      mount.address = known == m_servers.end() ? mount.server : known->second;
      if (known == m_servers.end())
        check_host(entry.value, mount.server);
    }
    const auto [first, fresh] = m_mount_points.try_emplace(mount.at, entry.name);
    if (!fresh && !mount.at.empty())
      m_problem.add({value_place(entry.value, "at"),
                     fmt::format("`{}` is the mount point of `{}` already", shown(mount.at), shown(first->second)),
                     "each mount needs a directory of its own"});
    return mount;
  }

  /// A host that `servers:` does not describe is fine, unless it is a known name with a typing mistake.
  void check_host(const Node& mount, const std::string& host) {
    const auto place = value_place(mount, "from");
    const bool full_name = host.find_first_of(".:") != std::string::npos; // or an address
    if (full_name || m_servers.size() > k_many_servers || !m_problem.wants(place))
      return;
    std::vector<std::string> names;
    for (const auto& [name, address] : m_servers)
      names.push_back(name);
    if (const auto near = did_you_mean(host, names))
      m_problem.add(
          {place, fmt::format("no server is called `{}`", shown(host)),
           fmt::format("did you mean `{}`? If `{}` is another machine, add it under `servers:`", *near, shown(host))});
  }

  Conda conda(const Node& node, const Node& root) {
    Conda conda;
    conda.store = text_of(node, "conda.store");
    conda.envs = texts_of(node, "conda.envs");
    conda.link = text_of(node, "conda.link");
    const Node none;
    const Node* homes = node.find("homes");
    conda.homes.users = texts_of(homes == nullptr ? none : *homes, "conda.homes.users");
    conda.homes.conda = text_of(homes == nullptr ? none : *homes, "conda.homes.conda");
    const auto entry = std::ranges::find(root.entries, "conda", &Entry::name);
    conda.origin = m_source.origin(entry->place);
    return conda;
  }

  Caches caches(const Node& node) {
    Caches caches;
    caches.local = texts_of(node, "caches.local");
    caches.min_free = text_of(node, "caches.min_free");
    for (const auto& item : items_of(node, "rules"))
      caches.rules.push_back({text_of(item, "caches.rules[].program"), text_of(item, "caches.rules[].flag"),
                              text_of(item, "caches.rules[].place"), m_source.origin(item.place)});
    return caches;
  }

  static Place value_place(const Node& mapping, std::string_view name) {
    const Node* node = mapping.find(name);
    return node == nullptr ? mapping.place : node->place;
  }

  const Source& m_source;
  FirstProblem& m_problem;
  std::map<std::string, std::string> m_servers;      ///< name -> address
  std::map<std::string, std::string> m_mount_points; ///< at -> name of the mount
};

} // namespace

Config fill(const Node& root, const Source& source, FirstProblem& problem) {
  return Filler(source, problem).config(root);
}

} // namespace sharefs::config
