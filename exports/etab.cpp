// /var/lib/nfs/etab: what it holds, and what exportfs will make of it.
#include "base/path.hpp"
#include "exports/facts.hpp"
#include "exports/lexer.hpp"

#include <algorithm>
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

ExpectedEtab expected_etab(const std::vector<ExportsFile>& files, const HostFacts& facts) {
  ExpectedEtab expected;
  ExportIndex index(facts);
  for (const auto& file : files) {
    bool stopped = false;
    for (const auto& written : file.exports) {
      Export entry = written;
      entry.directory = real_path(entry.directory, facts);
      stopped = stopped || lacks_option(entry, facts);
      if (stopped || is_dropped(entry.client, facts)) {
        expected.dropped.push_back({std::move(entry), std::nullopt});
        continue;
      }
      if (const auto* const name = fact_of(entry.client, facts); name != nullptr && !name->canonical.empty())
        entry.client = name->canonical;
      if (const auto winner = index.add(entry, expected.entries.size()))
        expected.dropped.push_back({std::move(entry), winner});
      else
        expected.entries.push_back(std::move(entry));
    }
  }
  return expected;
}

} // namespace sharefs::exports
