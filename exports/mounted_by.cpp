#include "exports/mounted_by.hpp"

#include "base/path.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <set>

namespace sharefs::exports {

namespace {

constexpr const char* k_clients = "/proc/fs/nfsd/clients";
constexpr const char* k_rmtab = "/var/lib/nfs/rmtab";
constexpr std::size_t k_most_clients = 1024;
constexpr std::size_t k_most_states = 32768; ///< bytes of a client's states: some 200
constexpr std::size_t k_most_rmtab = 1U << 20U;
constexpr std::size_t k_most_named = 20;

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

bool holds(const Network& wide, const Network& narrow) {
  bool all = wide.v6 == narrow.v6;
  for (std::size_t i = 0; i < wide.address.size(); ++i)
    all = all && ((wide.address.at(i) ^ narrow.address.at(i)) & wide.mask.at(i)) == 0;
  return all;
}

/// May the host be the client? What is no address and no known name may be anybody.
bool may_be(const std::string& host, const Export& entry, const Clients& clients) {
  const auto wide = clients.networks(entry.client);
  const auto narrow = clients.networks(host);
  return wide.empty() || narrow.empty() || std::ranges::any_of(wide, [&](const Network& network) {
           return std::ranges::any_of(narrow, [&](const Network& address) { return holds(network, address); });
         });
}

/// The file system of a directory as nfsd writes it in `states`: "fe:10".
std::string superblock_of(const std::string& directory, const HostFacts& facts) {
  const auto* mount = facts.mounts.owner_of(directory);
  return mount == nullptr ? "" : fmt::format("{:02x}:{:02x}", mount->major, mount->minor);
}

std::string list_of_clients(const std::set<std::string>& names) {
  std::vector<std::string> shown(
      names.begin(), std::next(names.begin(), static_cast<std::ptrdiff_t>(std::min(names.size(), k_most_named))));
  if (names.size() > k_most_named)
    shown.push_back(fmt::format("and {} more", names.size() - k_most_named));
  return join(shown, ", ");
}

} // namespace

Version4Client parse_version4(std::string_view info, std::string_view states) {
  Version4Client client;
  client.address = without_port(value_of(info, "address"));
  client.version = "4." + value_of(info, "minor version");
  constexpr std::string_view k_field = "superblock: \"";
  for (const auto& line : split_lines(states)) {
    // - 0x...: { type: open, access: r-, deny: --, superblock: "fe:10:131", filename: "..." }
    const auto field = line.find(k_field);
    if (field == std::string::npos || line.find("type: open") > field)
      continue;
    const auto file_system = line.substr(field + k_field.size());
    if (const auto numbers = split(file_system, ':'); numbers.size() >= 3)
      ++client.open[numbers[0] + ":" + numbers[1]];
  }
  return client;
}

std::vector<RmtabLine> parse_rmtab(std::string_view text) {
  std::vector<RmtabLine> lines;
  for (const auto& line : split_lines(text)) { // HOST:/DIRECTORY:0x00000001
    const auto begin = line.find(":/");
    const auto end = line.rfind(':');
    if (begin != std::string::npos && begin != 0 && end > begin + 1)
      lines.push_back({line.substr(0, begin), line.substr(begin + 1, end - begin - 1)});
  }
  return lines;
}

MountedBy read_mounted(sys::System& system) {
  MountedBy mounted;
  sys::EntryRequest request;
  request.queries.push_back({.path = k_rmtab, .follow = true, .read_bytes = k_most_rmtab});
  const auto directory = system.entry({.path = k_clients, .list = true});
  if (directory.kind == sys::EntryKind::unknown)
    mounted.unknown = directory.error().message;
  auto names = directory.names; // none on kernels before 5.3, and while no server runs
  if (names.size() > k_most_clients) {
    mounted.unknown = fmt::format("of {} clients only {} were looked at", names.size(), k_most_clients);
    names.resize(k_most_clients);
  }
  for (const auto& name : names) {
    const auto client = join_path(k_clients, name);
    request.queries.push_back({.path = join_path(client, "info"), .read_bytes = 4096});
    request.queries.push_back({.path = join_path(client, "states"), .read_bytes = k_most_states});
  }
  const auto entries = system.entries(request);
  mounted.rmtab = parse_rmtab(entries[0].content);
  for (std::size_t i = 1; i + 1 < entries.size(); i += 2) {
    if (entries[i].kind == sys::EntryKind::unknown)
      mounted.unknown = entries[i].error().message;
    else if (entries[i].exists()) // it may have gone meanwhile
      mounted.version4.push_back(parse_version4(entries[i].content, entries[i + 1].content));
  }
  return mounted;
}

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
                                   list_of_clients(its)),
                       "give each of them a name of its own (`hostnamectl set-hostname NAME`), or `options nfs "
                       "nfs4_unique_id=NAME` in its /etc/modprobe.d, and boot it",
                       ""});
  return found;
}

std::vector<Export> dropped_by(const ExpectedEtab& expected, const std::vector<Export>& etab, const HostFacts& facts) {
  const ExportIndex stays(facts, expected.entries);
  std::vector<Export> dropped;
  std::ranges::copy_if(etab, std::back_inserter(dropped), [&](const Export& entry) { return !stays.has(entry); });
  return dropped;
}

std::vector<std::string> notes_of_mounted(const std::vector<Export>& withdrawn, const MountedBy& mounted,
                                          const HostFacts& facts) {
  std::map<std::string, std::vector<const Export*>> directories;
  for (const auto& entry : withdrawn)
    directories[entry.directory].push_back(&entry);
  const Clients clients(facts);
  std::vector<std::string> notes;
  for (const auto& [directory, entries] : directories) {
    const auto loses = [&lost = entries, &clients](const std::string& host) {
      return std::ranges::any_of(lost, [&](const Export* entry) { return may_be(host, *entry, clients); });
    };
    const auto superblock = superblock_of(directory, facts);
    std::set<std::string> version4;
    for (const auto& client : mounted.version4)
      if (loses(client.address)) {
        const auto open = client.open.find(superblock);
        version4.insert(
            fmt::format("{} ({}{})", client.address, client.version,
                        open == client.open.end() ? "" : fmt::format(", {} open", count_of(open->second, "file"))));
      }
    std::set<std::string> version3;
    for (const auto& line : mounted.rmtab)
      if (is_under(line.directory, directory) && loses(line.host))
        version3.insert(line.host);
    if (!version4.empty())
      notes.push_back(
          fmt::format("{} is withdrawn from clients that have this server mounted by NFS 4 (which directory, "
                      "a server does not know): {}",
                      directory, list_of_clients(version4)));
    if (!version3.empty())
      notes.push_back(fmt::format("{} is withdrawn from clients that have it mounted by NFS 3 (by {}, which may be out "
                                  "of date): {}",
                                  directory, k_rmtab, list_of_clients(version3)));
  }
  if (!directories.empty() && !mounted.unknown.empty())
    notes.push_back("there may be more clients of NFS 4 that have it mounted: " + mounted.unknown);
  return notes;
}

} // namespace sharefs::exports
