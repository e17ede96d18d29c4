// /var/lib/nfs/etab: reading it, and foretelling it.
#include "base/path.hpp"
#include "base/text.hpp"
#include "exports/client.hpp"
#include "exports/facts.hpp"
#include "exports/lexer.hpp"

#include <algorithm>
#include <optional>
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

/// Of a host, in one spelling; by its canonical name too.
std::vector<std::string> addresses_of(std::string_view name, const HostFacts& facts) {
  if (const auto address = canonical_address(name); !address.empty())
    return {address};
  std::vector<std::string> addresses;
  for (const auto& [known, fact] : facts.names)
    if (same_text(known, name) || same_text(fact.canonical, name))
      for (const auto& address : fact.addresses)
        addresses.push_back(canonical_address(address));
  return addresses;
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

bool lacks_option(const std::vector<std::string>& options, const HostFacts& facts) {
  return std::any_of(options.begin(), options.end(), [&](const std::string& option) {
    return facts.missing_options.contains(option.substr(0, option.find('=')));
  });
}

/// Of a client by itself.
std::optional<Dropped::Why> why_dropped(std::string_view client, const HostFacts& facts) {
  if (kind_of(client) == ClientKind::host) {
    const auto* const name = fact_of(client, facts);
    if (client.find(',') != std::string_view::npos || (name != nullptr && name->addresses.empty()))
      return Dropped::Why::unresolved;
  }
  if (kind_of(client) != ClientKind::network)
    return std::nullopt;
  const auto network = parse_network(client);
  if (network || network.error().kind == NetworkError::Kind::zero)
    return std::nullopt;
  return Dropped::Why::bad_network;
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
  for (const auto& [one, other] : {std::pair(a, b), std::pair(b, a)})
    if (const auto* const fact = fact_of(one, facts); fact != nullptr && same_text(fact->canonical, other))
      return true;
  const auto mine = addresses_of(a, facts);
  const auto theirs = addresses_of(b, facts);
  return std::any_of(mine.begin(), mine.end(), [&](const std::string& address) {
    return std::find(theirs.begin(), theirs.end(), address) != theirs.end();
  });
}

bool covers(std::string_view general, std::string_view special, const HostFacts& facts) {
  if (kind_of(general) == ClientKind::everyone || same_client(general, special, facts))
    return true;
  const auto network =
      kind_of(general) == ClientKind::network ? parse_network(general) : tl::make_unexpected(NetworkError{});
  if (!network)
    return false;
  const auto contains = [&](std::string_view address) {
    const auto other = parse_network(address);
    return other && network->contains(*other);
  };
  if (kind_of(special) == ClientKind::network)
    return contains(special);
  const auto addresses =
      kind_of(special) == ClientKind::host ? addresses_of(special, facts) : std::vector<std::string>();
  return std::any_of(addresses.begin(), addresses.end(), contains);
}

std::string real_path(std::string_view directory, const HostFacts& facts) {
  const auto found = facts.directories.find(directory);
  if (found != facts.directories.end() && !found->second.real_path.empty())
    return found->second.real_path;
  return directory.starts_with('/') ? normalize_path(directory) : std::string(directory);
}

ExpectedEtab expected_etab(const std::vector<ExportsFile>& files, const HostFacts& facts) {
  using Why = Dropped::Why;
  ExpectedEtab expected;
  for (const auto& file : files) {
    bool stopped = false;
    for (const auto& line : file.exports)
      for (const auto& client : line.clients) {
        const auto settings = settings_of(client.defaults, client.options);
        if (!settings)
          continue; // parse() does not hand out such an entry
        auto options = client.defaults;
        options.insert(options.end(), client.options.begin(), client.options.end());
        stopped = stopped || lacks_option(options, facts);
        EtabEntry entry{real_path(line.directory, facts), client.name, *settings, options, client.origin};
        if (const auto why = stopped ? std::optional(Why::stopped) : why_dropped(client.name, facts)) {
          expected.dropped.push_back({std::move(entry), *why, {}});
          continue;
        }
        if (const auto* const name = fact_of(client.name, facts); name != nullptr && !name->canonical.empty())
          entry.client = name->canonical;
        if (const auto* const winner = find_same(expected.entries, entry, facts)) {
          expected.dropped.push_back({std::move(entry), Why::duplicate, winner->origin});
          continue;
        }
        expected.entries.push_back(std::move(entry));
      }
  }
  return expected;
}

} // namespace sharefs::exports
