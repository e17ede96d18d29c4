#include "cli/commands/up/part.hpp"

#include "base/json_fields.hpp"
#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "cli/commands/mount/support.hpp"
#include "exports/client.hpp"
#include "sys/identity/identity.hpp"
#include "sys/process/child.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fnmatch.h>
#include <map>

namespace sharefs::cli {

namespace {

using exports::ClientKind;

/// Decides whether clients of sharefs.yaml are this host. A name is resolved at most once, and only if no text matches.
class Self {
 public:
  Self(sys::System& system, std::chrono::milliseconds deadline)
      : m_system(system), m_identity(system.identity()), m_end(sys::deadline_in(deadline)) {}

  bool may_be(const std::vector<std::string>& clients) {
    return std::ranges::any_of(clients, [this](const std::string& client) { return is_by_text(client); }) ||
           std::ranges::any_of(clients, [this](const std::string& client) { return is_by_name(client); });
  }

 private:
  /// Decides by the text alone; true where only the server can decide.
  [[nodiscard]] bool is_by_text(const std::string& client) const {
    switch (exports::kind_of(client)) {
    case ClientKind::host:
      return sys::is_this_host(m_identity, client);
    case ClientKind::network:
      return is_in_network(client);
    case ClientKind::wildcard: // a pattern with a domain is compared with a name that only the server knows
      return client.find('.') != std::string::npos || matches(client, m_identity.hostname) ||
             matches(client, m_identity.hostname.substr(0, m_identity.hostname.find('.')));
    default:
      return true;
    }
  }

  static bool matches(const std::string& pattern, const std::string& name) {
    return ::fnmatch(pattern.c_str(), name.c_str(), FNM_CASEFOLD) == 0;
  }

  [[nodiscard]] bool is_in_network(const std::string& client) const {
    const auto network = exports::parse_network(client);
    return !network || std::ranges::any_of(m_identity.addresses, [&](const std::string& address) {
      auto own = exports::parse_network(address);
      if (!own || own->v6 != network->v6)
        return false;
      own->mask = network->mask;
      return own->first() == network->first();
    });
  }

  bool is_by_name(const std::string& client) {
    if (exports::kind_of(client) != ClientKind::host)
      return false;
    const auto [known, is_new] = m_names.emplace(client, false);
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(m_end - sys::Clock::now());
    if (is_new)
      known->second = leads_here(m_system, m_identity, client, left).value_or(true);
    return known->second;
  }

  sys::System& m_system;
  sys::Identity m_identity;
  std::map<std::string, bool> m_names;
  sys::Deadline m_end;
};

/// Returns the clients of the server's exports that contain the mount. They are empty if the file has no such export,
/// because each has clients.
std::vector<std::string> clients_of(const config::Config& config, const mounts::MountPoint& point) {
  std::vector<std::string> clients;
  for (const auto& server : config.servers)
    for (const auto& entry : server.exports)
      if (server.name == point.server_name && is_under(normalize_path(point.path), normalize_path(entry.path)))
        for (const auto& client : entry.clients)
          clients.insert(clients.end(), client.hosts.begin(), client.hosts.end());
  return clients;
}

} // namespace

HostPart find_part(sys::System& system, const config::Config& config, std::chrono::milliseconds names_deadline) {
  HostPart part;
  part.own = find_own_servers(system, config);
  Self self(system, names_deadline);
  for (auto& point : mount_points(system, &config)) {
    const bool serves = point.here || std::ranges::any_of(part.own.servers, [&](const config::Server* server) {
                          return server->name == point.server_name;
                        });
    const auto clients = serves ? std::vector<std::string>{} : clients_of(config, point);
    if (clients.empty() || self.may_be(clients))
      part.mounts.push_back(std::move(point));
    else
      part.elsewhere.push_back(point.name);
  }
  return part;
}

std::vector<mounts::MountPoint> mounts_for_host(sys::System& system, const config::Config& config,
                                                std::chrono::milliseconds names_deadline) {
  auto part = find_part(system, config, names_deadline);
  const bool is_named = !part.mounts.empty() || !part.own.servers.empty();
  return is_named ? std::move(part.mounts) : mount_points(system, &config);
}

void leave_out_elsewhere(sys::System& system, const config::Config* config, std::vector<mounts::MountState>& states,
                         std::chrono::milliseconds names_deadline) {
  const auto is_missing = [](const mounts::MountState& state) {
    return state.wanted && state.health == mounts::Health::missing;
  };
  if (config == nullptr || std::ranges::none_of(states, is_missing))
    return;
  const auto points = mounts_for_host(system, *config, names_deadline);
  std::erase_if(states, [&](const mounts::MountState& state) {
    return is_missing(state) && std::ranges::find(points, state.point.name, &mounts::MountPoint::name) == points.end();
  });
}

Result<void> check_named(sys::System& system, const config::Config& config, const HostPart& part) {
  if (!part.own.servers.empty() || !part.mounts.empty() || (config.servers.empty() && config.mounts.empty()))
    return {};
  if (part.elsewhere.empty()) {
    auto error = not_a_server(system, config);
    error.message += ", and there are no `mounts:`";
    error.hint = "write what the clients mount under `mounts:`; on a server, correct its `address`";
    return fail(error);
  }
  const auto identity = system.identity();
  if (identity.addresses.empty())
    return fail(
        ErrorCode::failed,
        fmt::format("this host (`{}`) has no network address now, and sharefs.yaml names it by one", identity.hostname),
        "see `ip address`: bring its network up, then run this again");
  return fail(
      ErrorCode::config,
      fmt::format("sharefs.yaml does not name this host (`{}`, {}): it is no server, and none of the `clients:`",
                  identity.hostname, join(identity.addresses, ", ")),
      "add its name or address to the `clients:` of what it is to mount, and run `sharefs up` on the server "
      "first");
}

/// True if the server has one of these exports in force, also without the file of sharefs: a run that was cut off
/// before `exportfs -r` has left them.
bool any_in_force(sys::System& system, const OwnServers& own) {
  const auto etab = exports::read_etab(system.files());
  return etab && std::ranges::any_of(*etab, [&](const exports::Export& entry) {
           return std::ranges::any_of(own.servers, [&](const config::Server* server) {
             return std::ranges::find(server->exports, entry.directory, &config::Export::path) != server->exports.end();
           });
         });
}

Result<std::optional<exports::Request>> find_exports(sys::System& system, const config::Config& config,
                                                     const OwnServers& own, bool remove) {
  if (!remove && own.exports() == 0)
    return std::nullopt;
  TRY_ASSIGN(const auto files, exports::read_host_files(system.files()));
  if (remove && !files.own && !any_in_force(system, own))
    return std::nullopt;
  Arguments all;
  all.flags = {"all"};
  if (remove)
    all.flags.insert("remove");
  return export_request(system, config, all, own, files);
}

std::string describe(const HostPart& part) {
  std::vector<std::string> parts;
  for (const auto* server : part.own.servers)
    parts.push_back(fmt::format("server `{}` ({})", server->name, count_of(server->exports.size(), "export")));
  std::vector<std::string> servers;
  for (const auto& point : part.mounts)
    if (std::ranges::find(servers, mounts::server_of(point)) == servers.end())
      servers.push_back(mounts::server_of(point));
  constexpr std::size_t k_named = 3;
  const auto from = servers.empty()             ? ""
                    : servers.size() <= k_named ? " from " + join(servers, ", ")
                                                : fmt::format(" from {}", count_of(servers.size(), "server"));
  if (!part.mounts.empty() || parts.empty())
    parts.push_back(count_of(part.mounts.size(), "mount") + from);
  auto text = join(parts, ", ");
  if (part.elsewhere.empty())
    return text;
  return text + "; for other hosts: " +
         (part.elsewhere.size() <= k_named ? join(part.elsewhere, ", ") : count_of(part.elsewhere.size(), "mount"));
}

Json to_json(const HostPart& part) {
  std::vector<std::string> servers, mounts;
  for (const auto* server : part.own.servers)
    servers.push_back(server->name);
  for (const auto& point : part.mounts)
    mounts.push_back(point.name);
  return {{"servers", json_of(servers)},
          {"exports", part.own.exports()},
          {"mounts", json_of(mounts)},
          {"elsewhere", json_of(part.elsewhere)}};
}

} // namespace sharefs::cli
