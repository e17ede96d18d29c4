// Parses /var/lib/nfs/etab, and finds the line of an export in it.
#include "base/path.hpp"
#include "base/text.hpp"
#include "exports/facts.hpp"
#include "exports/lexer.hpp"

#include <algorithm>
#include <cerrno>
#include <optional>

namespace sharefs::exports {

std::optional<Export> parse_etab_line(std::string_view line, const Origin& origin) {
  const auto tab = line.find_first_of(" \t"); // in etab blanks in a path are escaped
  const auto open = line.find('(', std::min(tab, line.size()));
  const auto close = line.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open)
    return std::nullopt;
  const auto client = line.substr(tab + 1, open - tab - 1);
  auto options = split_options(line.substr(open + 1, close - open - 1));
  for (auto& option : options)
    if (option.starts_with("refer=") || option.starts_with("replicas="))
      option = decode_octal(option);
  auto settings = settings_of(options);
  return Export{decode_octal(line.substr(0, tab)),
                client.empty() ? "*" : std::string(client),
                std::move(settings),
                std::move(options),
                origin,
                origin};
}

std::vector<Export> parse_etab(std::string_view text) {
  std::vector<Export> entries;
  int number = 0;
  for (const auto& line : split_lines(text))
    if (auto entry = parse_etab_line(line, {k_etab, ++number, 1}))
      entries.push_back(std::move(*entry));
  return entries;
}

bool is_readable(std::string_view line, const Export& entry) {
  for (const auto& option : entry.options)
    if (option.starts_with("squash_") && option.find("anonuid") != std::string::npos) // exportfs 2.6.2 writes no comma
      return false;
  Lexer lexer(line);
  Word directory, client;
  if (lexer.next(k_path_limit, directory) != Lexer::Got::word || directory.text != entry.directory)
    return false;
  lexer.skip_blanks();
  if (lexer.next(k_client_limit, client) != Lexer::Got::word || !lexer.at_line_end())
    return false;
  const std::string_view word = client.text;
  const auto open = word.find('(');
  const auto name = word.substr(0, open);
  return open != std::string_view::npos && !word.starts_with('-') && word.find(')', open) == word.size() - 1 &&
         (name == entry.client || (name.empty() && entry.client == "*")) &&
         split_options(word.substr(open + 1, word.size() - open - 2)) == entry.options;
}

ExportIndex::ExportIndex(const HostFacts& facts, const std::vector<Export>& list) {
  for (const auto& [name, fact] : facts.names) {
    const auto host = lower_case(fact.canonical.empty() ? name : fact.canonical);
    m_hosts.emplace(lower_case(name), host);
    m_hosts.emplace(host, host);
    for (const auto& address : fact.addresses)
      m_hosts.emplace(canonical_address(address), host);
  }
  for (std::size_t i = 0; i < list.size(); ++i)
    m_positions.emplace(key(list[i].directory, list[i].client), i);
}

std::string ExportIndex::key(std::string_view directory, std::string_view client) const {
  auto name = normalize_client(client);
  if (const auto host = m_hosts.find(name); kind_of(client) == ClientKind::host && host != m_hosts.end())
    name = host->second;
  return std::string(directory).append(1, '\0').append(name); // a NUL byte cannot be part of a path
}

std::optional<std::size_t> ExportIndex::find(std::string_view directory, std::string_view client) const {
  const auto found = m_positions.find(key(directory, client));
  return found == m_positions.end() ? std::nullopt : std::optional(found->second);
}

std::string real_path(std::string_view directory, const HostFacts& facts) {
  const auto found = facts.directories.find(directory);
  if (found != facts.directories.end() && !found->second.resolved.empty())
    return found->second.resolved;
  return directory.starts_with('/') ? normalize_path(directory) : std::string(directory);
}

std::string etab_path(std::string_view directory, const HostFacts& facts) {
  const auto found = facts.directories.find(directory);
  if (found == facts.directories.end())
    return real_path(directory, facts);
  const auto& entry = found->second;
  const bool is_file = entry.exists() && entry.kind != sys::EntryKind::directory;
  const bool names_directory = directory.ends_with('/') || directory.ends_with("/.");
  const bool unresolved =
      entry.kind == sys::EntryKind::missing || entry.error_number == ELOOP || (is_file && names_directory);
  return unresolved ? std::string(directory) : real_path(directory, facts);
}

} // namespace sharefs::exports
