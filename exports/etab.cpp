// /var/lib/nfs/etab: what it holds, and what exportfs will make of it.
#include "base/path.hpp"
#include "exports/facts.hpp"
#include "exports/lexer.hpp"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <set>

namespace sharefs::exports {

namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  for (auto& byte : result)
    byte = byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte - 'A' + 'a') : byte; // strcasecmp(3) in the C locale
  return result;
}

const NameFact* fact_of(std::string_view name, const HostFacts& facts) {
  const auto found = facts.names.find(name);
  return found == facts.names.end() ? nullptr : &found->second;
}

std::string index_key(std::string_view directory, std::string_view client) {
  std::string key(directory);
  return key.append(1, '\0').append(client); // no name of a file system holds it
}

/// What can be read of the options: a word that we do not know is left out.
Settings readable_settings(std::vector<std::string> options) {
  auto settings = settings_of({}, options);
  while (!settings) {
    options.erase(options.begin() + static_cast<std::ptrdiff_t>(settings.error().index));
    settings = settings_of({}, options);
  }
  return *settings;
}

bool lacks_option(const Export& entry, const HostFacts& facts) {
  const auto lacks = [&](const std::string& option) {
    return facts.missing_options.contains(option.substr(0, option.find('=')));
  };
  return !facts.missing_options.empty() && (std::any_of(entry.defaults.begin(), entry.defaults.end(), lacks) ||
                                            std::any_of(entry.options.begin(), entry.options.end(), lacks));
}

/// Does exportfs read this client and drop it, whatever else is exported?
bool is_dropped(std::string_view client, const HostFacts& facts) {
  const auto kind = kind_of(client);
  if (kind == ClientKind::host) {
    const auto* const name = fact_of(client, facts);
    return client.find(',') != std::string_view::npos || (name != nullptr && name->addresses.empty());
  }
  const auto network = kind == ClientKind::network ? parse_network(client) : Network{};
  return !network && network.error().kind != NetworkError::Kind::zero;
}

} // namespace

std::vector<Export> parse_etab(std::string_view text) {
  std::vector<Export> entries;
  Lexer lexer(text);
  const LineIndex lines(text, k_etab);
  constexpr std::size_t k_limit = 65536; // of a word; exportfs writes what it likes
  for (lexer.skip_lines(); !lexer.at_end(); lexer.skip_lines()) {
    Word directory;
    Word client;
    const auto origin = lines.at(lexer.offset());
    const auto got = lexer.next(k_limit, directory);
    lexer.skip_blanks();
    if (got == Lexer::Got::word && lexer.next(k_limit, client) == Lexer::Got::word) {
      const auto open = client.text.find('(');
      const auto close = client.text.rfind(')');
      if (open != std::string::npos && close != std::string::npos && open < close) {
        auto options = split_options(std::string_view(client.text).substr(open + 1, close - open - 1));
        const auto name = client.text.substr(0, open);
        auto settings = readable_settings(options);
        entries.push_back(
            {directory.text, name.empty() ? "*" : name, std::move(settings), {}, std::move(options), origin, origin});
      }
    }
    lexer.skip_rest_of_line();
  }
  return entries;
}

Clients::Clients(const HostFacts& facts) {
  for (const auto& [name, fact] : facts.names) {
    std::set<std::string> names{lower(name)};
    if (!fact.canonical.empty())
      names.insert(lower(fact.canonical));
    std::vector<std::string> keys(names.begin(), names.end());
    for (const auto& address : fact.addresses)
      keys.push_back(canonical_address(address));
    for (const auto& known : names)
      m_keys[known].insert(m_keys[known].end(), keys.begin(), keys.end());
  }
}

std::vector<std::string> Clients::keys(std::string_view client) const {
  const auto name = lower(client);
  if (kind_of(client) == ClientKind::host) {
    if (auto address = canonical_address(client); !address.empty())
      return {std::move(address)};
    if (const auto found = m_keys.find(name); found != m_keys.end())
      return found->second;
  }
  return {name};
}

std::vector<Network> Clients::networks(std::string_view client) const {
  std::vector<Network> networks;
  const auto kind = kind_of(client);
  if (kind != ClientKind::host && kind != ClientKind::network)
    return networks;
  for (const auto& key : keys(client))
    if (const auto network = parse_network(key))
      networks.push_back(*network);
  return networks;
}

ExportIndex::ExportIndex(const HostFacts& facts, const std::vector<Export>& list) : m_clients(facts) {
  for (std::size_t i = 0; i < list.size(); ++i)
    add(list[i], i);
}

std::optional<std::size_t> ExportIndex::add(const Export& entry, std::size_t position) {
  const auto keys = m_clients.keys(entry.client);
  const auto first = find_any(entry.directory, keys);
  if (!first)
    for (const auto& key : keys)
      m_positions.emplace(index_key(entry.directory, key), position);
  return first;
}

std::optional<std::size_t> ExportIndex::find(std::string_view directory, std::string_view client) const {
  return find_any(directory, m_clients.keys(client));
}

std::optional<std::size_t> ExportIndex::find_any(std::string_view directory,
                                                 const std::vector<std::string>& keys) const {
  std::optional<std::size_t> first;
  for (const auto& key : keys)
    if (const auto found = m_positions.find(index_key(directory, key)); found != m_positions.end())
      first = std::min(first.value_or(found->second), found->second);
  return first;
}

std::string real_path(std::string_view directory, const HostFacts& facts) {
  const auto found = facts.directories.find(directory);
  if (found != facts.directories.end() && !found->second.resolved.empty())
    return found->second.resolved;
  return directory.starts_with('/') ? normalize_path(directory) : std::string(directory);
}

std::string etab_path(std::string_view directory, const HostFacts& facts) {
  const auto found = facts.directories.find(directory);
  const bool unresolved = found != facts.directories.end() &&
                          (found->second.kind == sys::EntryKind::missing || found->second.error_number == ELOOP);
  return unresolved ? std::string(directory) : real_path(directory, facts);
}

namespace {

/// Whom exportfs knows, in the order in which it learns of them (client_lookup in support/export/client.c).
class KnownClients {
 public:
  KnownClients(const HostFacts& facts, std::size_t exports) : m_facts(facts) { m_positions.reserve(exports); }

  struct Client {
    std::string name;                   ///< as etab has it
    std::vector<std::string> addresses; ///< that mountd finds for this name
    Origin origin;
    std::string written;
  };

  /// Position of the one that exportfs takes `entry`'s client for; a new one, if need be.
  std::size_t look_up(const Export& entry, const std::vector<std::string>& addresses) {
    std::optional<std::size_t> first;
    for (const auto& address : addresses)
      if (const auto found = m_positions.find(address); found != m_positions.end())
        first = std::min(first.value_or(found->second), found->second);
    if (first)
      return *first;
    const auto* const fact = fact_of(entry.client, m_facts);
    const bool renamed = fact != nullptr && !fact->canonical.empty();
    const auto name = renamed ? fact->canonical : entry.client;
    const auto* const again = renamed ? fact_of(name, m_facts) : nullptr;
    m_clients.push_back({name, again == nullptr || again->addresses.empty() ? addresses : addresses_of(name),
                         entry.origin, entry.client});
    for (const auto& address : addresses)
      m_positions.emplace(address, m_clients.size() - 1);
    return m_clients.size() - 1;
  }
  [[nodiscard]] const Client& at(std::size_t position) const { return m_clients[position]; }

  /// What exportfs compares: addresses of a host, else the name and its kind.
  [[nodiscard]] std::vector<std::string> addresses_of(std::string_view client) const {
    constexpr std::size_t k_most = 64; // NFSCLNT_ADDRMAX
    const auto kind = kind_of(client);
    const auto* const fact = kind == ClientKind::host ? fact_of(client, m_facts) : nullptr;
    if (kind == ClientKind::host && fact == nullptr)
      if (auto address = canonical_address(client); !address.empty())
        return {std::move(address)};
    if (fact == nullptr || fact->addresses.empty())
      return {to_string(kind) + (" " + lower(client))};
    std::vector<std::string> addresses;
    for (const auto& address : fact->addresses)
      if (addresses.size() < k_most)
        addresses.push_back(canonical_address(address));
    return addresses;
  }

 private:
  const HostFacts& m_facts;
  std::vector<Client> m_clients;
  std::unordered_map<std::string, std::size_t> m_positions; ///< by address
};

std::vector<std::string> missing_in(const std::vector<std::string>& some, const std::vector<std::string>& all) {
  std::vector<std::string> missing;
  for (const auto& one : some)
    if (std::ranges::find(all, one) == all.end())
      missing.push_back(one);
  return missing;
}

} // namespace

ExpectedEtab expected_etab(const std::vector<ExportsFile>& files, const HostFacts& facts) {
  ExpectedEtab expected;
  std::size_t all = 0;
  for (const auto& file : files)
    all += file.exports.size();
  expected.entries.reserve(all);
  KnownClients clients(facts, all);
  std::unordered_map<std::string, std::size_t> taken; // by directory and client
  taken.reserve(all);
  for (const auto& file : files) {
    auto& positions = expected.positions.emplace_back();
    for (const auto& written : file.exports) {
      positions.emplace_back();
      Export entry = written;
      entry.directory = etab_path(entry.directory, facts);
      if (lacks_option(entry, facts))
        expected.stopped.insert(file.name);
      if (expected.stopped.contains(file.name) || is_dropped(entry.client, facts)) {
        expected.dropped.push_back({std::move(entry), std::nullopt});
        continue;
      }
      const auto addresses = clients.addresses_of(entry.client);
      const auto client = clients.look_up(entry, addresses);
      const auto& known = clients.at(client);
      const auto [winner, added] =
          taken.emplace(index_key(entry.directory, std::to_string(client)), expected.entries.size());
      auto gains = added ? missing_in(known.addresses, addresses) : std::vector<std::string>();
      if (auto loses = missing_in(addresses, known.addresses); !gains.empty() || !loses.empty())
        expected.mistaken.push_back(
            {written, known.origin, known.written, known.name, std::move(gains), std::move(loses)});
      entry.client = known.name;
      if (!added) {
        expected.dropped.push_back({std::move(entry), winner->second});
        continue;
      }
      positions.back() = expected.entries.size();
      expected.entries.push_back(std::move(entry));
    }
  }
  return expected;
}

} // namespace sharefs::exports
