#include "exports/client_names.hpp"

#include "base/path.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>

namespace sharefs::exports {

namespace {

constexpr const char* k_clients = "/proc/fs/nfsd/clients";
constexpr std::size_t k_most_clients = 1024;

/// What stands behind `KEY: ` on a line of its own, without quotes.
std::string value_of(std::string_view text, std::string_view key) {
  for (const auto& line : split_lines(text))
    if (line.starts_with(key) && line.substr(key.size()).starts_with(": ")) {
      const auto value = trim(std::string_view(line).substr(key.size() + 2));
      return std::string(value.starts_with('"') && value.size() > 1 ? value.substr(1, value.size() - 2) : value);
    }
  return "";
}

/// "10.0.0.2:812" and "[fd00::2]:812" without the port.
std::string without_port(const std::string& address) {
  const auto host = address.substr(0, address.rfind(':'));
  return host.starts_with('[') && host.ends_with(']') ? host.substr(1, host.size() - 2) : host;
}

} // namespace

std::vector<ClientName> read_client_names(sys::System& system) {
  auto names = system.entry({.path = k_clients, .list = true}).names;
  names.resize(std::min(names.size(), k_most_clients));
  sys::EntryRequest request;
  for (const auto& name : names)
    request.queries.push_back({.path = join_path(join_path(k_clients, name), "info"), .read_bytes = 4096});
  std::vector<ClientName> seen;
  for (const auto& entry : names.empty() ? std::vector<sys::Entry>() : system.entries(request)) {
    ClientName client{value_of(entry.content, "name"), without_port(value_of(entry.content, "address"))};
    if (!client.name.empty() && !client.address.empty())
      seen.push_back(std::move(client));
  }
  return seen;
}

Diagnoses diagnose_client_names(const std::vector<ClientName>& seen) {
  std::map<std::string, std::set<std::string>> addresses;
  for (const auto& client : seen)
    addresses[client.name].insert(client.address);
  Diagnoses found;
  for (const auto& [name, its] : addresses)
    if (its.size() > 1)
      found.push_back({Severity::error, "SF247", to_utf8(name),
                       fmt::format("hosts with one NFS 4 client name, which take each other's place: {}; file locks do "
                                   "not exclude one from the other",
                                   join({its.begin(), its.end()}, ", ")),
                       "give each of them a name of its own (`hostnamectl set-hostname NAME`), or `options nfs "
                       "nfs4_unique_id=NAME` in its /etc/modprobe.d, and boot it",
                       ""});
  return found;
}

} // namespace sharefs::exports
