// /var/lib/nfs/etab: reading it, and foretelling it.
#include "base/path.hpp"
#include "base/text.hpp"
#include "exports/client.hpp"
#include "exports/facts.hpp"
#include "exports/lexer.hpp"

#include <algorithm>
#include <strings.h>

namespace sharefs::exports {

namespace {

bool same_text(std::string_view a, std::string_view b) {
  return a.size() == b.size() && ::strncasecmp(a.data(), b.data(), a.size()) == 0;
}

const NameFact* fact_of(std::string_view name, const HostFacts& facts) {
  const auto found = facts.names.find(name);
  return found == facts.names.end() ? nullptr : &found->second;
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

/// exportfs looks a client up in the list of its kind before it adds an entry.
const EtabEntry* find_same(const std::vector<EtabEntry>& entries, const EtabEntry& entry, const HostFacts& facts) {
  for (const auto& there : entries)
    if (there.directory == entry.directory && same_client(there.client, entry.client, facts))
      return &there;
  return nullptr;
}

} // namespace

std::vector<EtabEntry> parse_etab(std::string_view text) {
  std::vector<EtabEntry> entries;
  Lexer lexer(text);
  const LineIndex lines(text);
  constexpr std::size_t k_limit = 65536; // of a word; exportfs writes what it likes
  for (lexer.skip_lines(); !lexer.at_end(); lexer.skip_lines()) {
    Word directory;
    Word client;
    const auto place = lines.at(lexer.offset());
    const auto got = lexer.next(k_limit, directory);
    lexer.skip_blanks();
    if (got == Lexer::Got::word && lexer.next(k_limit, client) == Lexer::Got::word) {
      const auto open = client.text.find('(');
      const auto close = client.text.rfind(')');
      if (open != std::string::npos && close != std::string::npos && open < close) {
        auto options = split_options(std::string_view(client.text).substr(open + 1, close - open - 1));
        const auto name = client.text.substr(0, open);
        entries.push_back({directory.text, name.empty() ? "*" : name, readable_settings(options), options,
                           Origin{k_etab, place.line, place.column}});
      }
    }
    lexer.skip_rest_of_line();
  }
  return entries;
}

bool same_client(std::string_view a, std::string_view b, const HostFacts& facts) {
  if (same_text(a, b))
    return true;
  if (kind_of(a) != ClientKind::host || kind_of(b) != ClientKind::host)
    return false;
  const auto* const fact_a = fact_of(a, facts);
  const auto* const fact_b = fact_of(b, facts);
  if (fact_a != nullptr && same_text(fact_a->canonical, b))
    return true;
  if (fact_b != nullptr && same_text(fact_b->canonical, a))
    return true;
  return fact_a != nullptr && fact_b != nullptr &&
         std::any_of(fact_a->addresses.begin(), fact_a->addresses.end(), [&](const std::string& address) {
           return std::find(fact_b->addresses.begin(), fact_b->addresses.end(), address) != fact_b->addresses.end();
         });
}

std::string real_path(std::string_view directory, const HostFacts& facts) {
  const auto found = facts.directories.find(directory);
  if (found != facts.directories.end() && !found->second.real_path.empty())
    return found->second.real_path;
  return directory.starts_with('/') ? normalize_path(directory) : std::string(directory);
}

ExpectedEtab expected_etab(const std::vector<ExportsFile>& files, const HostFacts& facts) {
  ExpectedEtab expected;
  for (const auto& file : files)
    for (const auto& line : file.exports)
      for (const auto& client : line.clients) {
        const auto settings = settings_of(client.defaults, client.options);
        if (!settings)
          continue; // parse() does not hand out such an entry
        auto options = client.defaults;
        options.insert(options.end(), client.options.begin(), client.options.end());
        EtabEntry entry{real_path(line.directory, facts), client.name, *settings, options, client.origin};
        const auto kind = kind_of(client.name);
        const auto* const name = fact_of(client.name, facts);
        using Why = Dropped::Why;
        if (kind == ClientKind::host && name != nullptr && name->addresses.empty()) {
          expected.dropped.push_back({std::move(entry), Why::unresolved, {}});
          continue;
        }
        if (kind == ClientKind::network) {
          const auto network = parse_network(client.name);
          if (!network && network.error().kind != NetworkError::Kind::zero) {
            expected.dropped.push_back({std::move(entry), Why::bad_network, {}});
            continue;
          }
        }
        if (name != nullptr && !name->canonical.empty())
          entry.client = name->canonical;
        if (const auto* const winner = find_same(expected.entries, entry, facts)) {
          expected.dropped.push_back({std::move(entry), Why::duplicate, winner->origin});
          continue;
        }
        expected.entries.push_back(std::move(entry));
      }
  return expected;
}

} // namespace sharefs::exports
