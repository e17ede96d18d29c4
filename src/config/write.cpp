// Config -> YAML and JSON: declared in config/keys.hpp.
#include "base/text.hpp"
#include "config/keys.hpp"
#include "config/values.hpp"
#include "config/yaml_text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace sharefs::config {

namespace {

using Json = nlohmann::ordered_json;

Json access_json(const Access& access) {
  switch (access.kind) {
  case Access::Kind::keep:
    return "keep";
  case Access::Kind::open:
    return "open";
  case Access::Kind::group:
    return {{"group", access.group}, {"mode", format_mode(access.mode)}};
  }
  return nullptr;
}

Json servers_json(const Config& config) {
  Json servers = Json::object();
  for (const auto& server : config.servers) {
    Json exports = Json::array();
    for (const auto& item : server.exports)
      exports.push_back({{"path", item.path},
                         {"clients", item.clients},
                         {"options", item.options},
                         {"access", access_json(item.access)}});
    servers[server.name] = {{"address", server.address}, {"exports", std::move(exports)}};
  }
  return servers;
}

Json mounts_json(const Config& config) {
  Json mounts = Json::object();
  for (const auto& mount : config.mounts)
    mounts[mount.name] = {{"from", format_remote(mount.server, mount.path)},
                          {"at", mount.at},
                          {"profile", mount.profile},
                          {"options", mount.options},
                          {"boot", mount.boot}};
  return mounts;
}

Json conda_json(const Conda& conda) {
  return {{"store", conda.store},
          {"envs", conda.envs},
          {"link", conda.link},
          {"homes", {{"users", conda.homes.users}, {"conda", conda.homes.conda}}}};
}

Json caches_json(const Caches& caches) {
  Json rules = Json::array();
  for (const auto& rule : caches.rules) {
    Json entry = Json::object();
    if (!rule.program.empty())
      entry["program"] = rule.program;
    entry["flag"] = rule.flag;
    entry["place"] = rule.place;
    rules.push_back(std::move(entry));
  }
  Json json{{"local", caches.local}};
  if (caches.min_free != Caches{}.min_free)
    json["min_free"] = caches.min_free;
  json["rules"] = std::move(rules);
  return json;
}

/// A value on one line, in YAML's flow style.
std::string flow(const Json& value) {
  if (value.is_string())
    return yaml_scalar(value.get_ref<const std::string&>());
  if (!value.is_structured())
    return value.dump();
  std::string out;
  for (const auto& [name, element] : value.items()) {
    if (!out.empty())
      out += ", ";
    if (value.is_object())
      out += yaml_scalar(name) + ": ";
    out += flow(element);
  }
  return value.is_object() ? "{" + out + "}" : "[" + out + "]";
}

bool is_flow(const Json& value) {
  if (!value.is_structured() || value.empty())
    return true;
  // Lists of plain values and the small mapping of `access` read best on one line.
  if (value.is_object())
    return value.contains("group") && value["group"].is_string();
  for (const auto& element : value)
    if (element.is_structured())
      return false;
  return true;
}

void block(const Json& value, std::size_t indentation, std::string& out) {
  const std::string margin(indentation, ' ');
  bool first = true;
  for (const auto& [name, element] : value.items()) {
    const std::string front = value.is_object() ? yaml_scalar(name) + ":" : "-";
    // The first key of a list's element stands behind its `- `, which the caller has written.
    if (!(first && out.ends_with("- ")))
      out += margin;
    first = false;
    if (is_flow(element)) {
      out += front + " " + flow(element) + "\n";
    } else if (value.is_array()) {
      out += "- ";
      block(element, indentation + 2, out);
    } else {
      out += front + "\n";
      block(element, indentation + 2, out);
    }
  }
}

} // namespace

nlohmann::ordered_json to_json(const Config& config) {
  Json json = {{"version", config.version}, {"servers", servers_json(config)}, {"mounts", mounts_json(config)}};
  if (config.conda)
    json["conda"] = conda_json(*config.conda);
  json["caches"] = caches_json(config.caches);
  json["nodes"] = Json::object();
  if (!config.nodes.hostfile.empty())
    json["nodes"]["hostfile"] = config.nodes.hostfile;
  return json;
}

std::string to_yaml(const Config& config) {
  std::string out;
  block(to_json(config), 0, out);
  return out;
}

} // namespace sharefs::config
