// An entry that is right in etab may still not be the one that a client gets.
#include "base/text.hpp"
#include "exports/diagnose_parts.hpp"

#include <fmt/format.h>

namespace sharefs::exports {

namespace {

/// Our own entries of one directory that a more specific client can take hosts out of. Wildcards and netgroups cannot
/// be looked into.
struct General {
  NetworkMap networks;
  std::optional<std::size_t> everyone;
};

} // namespace

Diagnoses diagnose_precedence(const std::vector<ExportsFile>& files, const std::string& own, const HostFacts& facts) {
  std::vector<Export> mine;
  std::vector<Export> theirs;
  for (const auto& file : files)
    for (auto& entry : expected_etab({file}, facts).entries)
      (file.name == own ? mine : theirs).push_back(std::move(entry));
  std::map<std::string_view, General> by_directory;
  for (std::size_t i = 0; i < mine.size(); ++i) {
    auto& general = by_directory[mine[i].directory];
    if (kind_of(mine[i].client) == ClientKind::everyone)
      general.everyone = i;
    else if (const auto network = parse_network(mine[i].client); network && kind_of(mine[i].client) != ClientKind::host)
      general.networks.add(*network, i);
  }
  const Clients clients(facts);
  Diagnoses diagnoses;
  for (const auto& special : theirs) {
    const auto kind = kind_of(special.client);
    const auto there = by_directory.find(special.directory);
    if (there == by_directory.end() || (kind != ClientKind::host && kind != ClientKind::network))
      continue;
    std::set<std::size_t> covering; // what would count for these hosts without `special`
    if (there->second.everyone)
      covering.insert(*there->second.everyone);
    if (kind == ClientKind::host)
      for (const auto& address : clients.networks(special.client))
        for (const auto number : there->second.networks.around(address))
          covering.insert(number);
    for (const auto number : covering) {
      const auto& general = mine[number];
      if (const auto differs = differences(general.settings, special.settings); !differs.empty())
        diagnoses.push_back(at(
            Severity::warning, "SF128", general.origin,
            fmt::format("`{}` gets `{}` from {} and not from here ({}): it is more specific than `{}`", special.client,
                        general.directory, special.origin.text(), join(differs, ", "), general.client),
            fmt::format("remove the entry at {}", special.origin.text())));
    }
  }
  return diagnoses;
}

} // namespace sharefs::exports
