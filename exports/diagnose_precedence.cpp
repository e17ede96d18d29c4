// An entry that is right in etab may still not be the one that a client gets.
#include "base/text.hpp"
#include "exports/client.hpp"
#include "exports/diagnose_parts.hpp"
#include "exports/settings.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::exports {

namespace {

/// Could a host that `special` matches be meant by `general` too?
bool takes_from(const EtabEntry& special, const EtabEntry& general, const HostFacts& facts) {
  const auto kind = kind_of(special.client);
  if (kind_of(general.client) == ClientKind::everyone)
    return kind == ClientKind::host || kind == ClientKind::network; // the others are no surprise
  if (kind_of(general.client) != ClientKind::network || kind != ClientKind::host)
    return false;
  const auto network = parse_network(general.client);
  if (!network)
    return false;
  for (const auto& [name, fact] : facts.names) {
    if (name != special.client && fact.canonical != special.client)
      continue;
    return std::any_of(fact.addresses.begin(), fact.addresses.end(), [&](const std::string& address) {
      const auto host = parse_network(address);
      return host && network->contains(*host);
    });
  }
  return false;
}

} // namespace

Diagnoses diagnose_precedence(const std::vector<ExportsFile>& files, const std::string& own, const HostFacts& facts) {
  std::vector<EtabEntry> mine;
  std::vector<EtabEntry> theirs;
  for (const auto& file : files)
    for (auto& entry : expected_etab({file}, facts).entries)
      (file.name == own ? mine : theirs).push_back(std::move(entry));
  Diagnoses diagnoses;
  for (const auto& general : mine)
    for (const auto& special : theirs) {
      if (special.directory != general.directory || kind_of(special.client) >= kind_of(general.client) ||
          !takes_from(special, general, facts))
        continue;
      if (const auto differs = differences(general.settings, special.settings); !differs.empty())
        diagnoses.push_back(at(
            Severity::warning, "SF128", general.origin,
            fmt::format("`{}` gets `{}` from {} and not from here ({}): it is more specific than `{}`", special.client,
                        general.directory, special.origin.text(), join(differs, ", "), general.client),
            fmt::format("remove the entry at {}", special.origin.text())));
    }
  return diagnoses;
}

} // namespace sharefs::exports
