// An entry that is right in etab may still not be the one that a client gets.
#include "base/text.hpp"
#include "exports/client.hpp"
#include "exports/diagnose_parts.hpp"
#include "exports/settings.hpp"

#include <fmt/format.h>

namespace sharefs::exports {

namespace {

/// Is it a surprise that `special` goes before `general`? Wildcards and netgroups cannot be looked into.
bool takes_from(const EtabEntry& special, const EtabEntry& general, const HostFacts& facts) {
  const auto kind = kind_of(special.client);
  return kind < kind_of(general.client) && (kind == ClientKind::host || kind == ClientKind::network) &&
         covers(general.client, special.client, facts);
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
      if (special.directory != general.directory || !takes_from(special, general, facts))
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
