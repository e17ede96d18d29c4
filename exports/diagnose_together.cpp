// Entries against each other, and against the host.
#include "base/text.hpp"
#include "exports/client.hpp"
#include "exports/diagnose_parts.hpp"
#include "exports/filesystem.hpp"
#include "exports/settings.hpp"

#include <fmt/format.h>
#include <map>
#include <optional>

namespace sharefs::exports {

namespace {

void diagnose_duplicates(const ExpectedEtab& expected, Diagnoses& diagnoses) {
  for (const auto& dropped : expected.dropped) {
    if (dropped.why != Dropped::Why::duplicate)
      continue;
    const auto& entry = dropped.entry;
    const EtabEntry* winner = nullptr;
    for (const auto& other : expected.entries)
      if (other.origin == dropped.by)
        winner = &other;
    const auto differs = winner == nullptr ? std::vector<std::string>{} : differences(entry.settings, winner->settings);
    diagnoses.push_back(at(differs.empty() ? Severity::warning : Severity::error, "SF115", entry.origin,
                           fmt::format("`{}` is exported to `{}` already at {}: exportfs ignores this entry{}",
                                       entry.directory, entry.client, dropped.by.text(),
                                       differs.empty() ? "" : fmt::format(" ({})", join(differs, ", "))),
                           "remove one of the two"));
  }
}

struct Range {
  const EtabEntry* entry;
  Network network;
};

void diagnose_overlaps(const ExpectedEtab& expected, Diagnoses& diagnoses) {
  std::map<std::string_view, std::vector<Range>> by_directory;
  for (const auto& entry : expected.entries) {
    if (kind_of(entry.client) != ClientKind::network)
      continue;
    const auto network = parse_network(entry.client);
    if (!network)
      continue;
    auto& ranges = by_directory[entry.directory];
    for (const auto& earlier : ranges) {
      if (!network->overlaps(earlier.network))
        continue;
      const bool same = network->matches(earlier.network);
      const auto differs = differences(earlier.entry->settings, entry.settings);
      if (differs.empty() && !same)
        continue; // one host of a network that has the same rights: superfluous, but clear
      diagnoses.push_back(
          at(Severity::warning, "SF116", entry.origin,
             differs.empty() ? fmt::format("`{}` is the same network as `{}` at {}", entry.client,
                                           earlier.entry->client, earlier.entry->origin.text())
                             : fmt::format("`{}` {} `{}` at {}, with other options ({}): mountd takes one of the two",
                                           entry.client, same ? "is the same network as" : "overlaps with",
                                           earlier.entry->client, earlier.entry->origin.text(), join(differs, ", ")),
             differs.empty() ? "remove one of the two" : "give both the same options, or make the networks disjoint"));
      break;
    }
    ranges.push_back({&entry, *network});
  }
}

void diagnose_fsids(const ExpectedEtab& expected, Diagnoses& diagnoses) {
  std::map<std::string, const EtabEntry*> owners;
  std::map<std::pair<std::string, std::string>, bool> told; // once for a pair of directory and fsid
  for (const auto& entry : expected.entries) {
    std::vector<std::string> ids;
    if (entry.settings.fsid)
      ids.push_back(std::to_string(*entry.settings.fsid));
    if (!entry.settings.uuid.empty())
      ids.push_back(entry.settings.uuid);
    for (const auto& id : ids) {
      const auto* const owner = owners.emplace(id, &entry).first->second;
      if (owner->directory == entry.directory || std::exchange(told[{entry.directory, id}], true))
        continue;
      diagnoses.push_back(
          at(Severity::error, "SF117", entry.origin,
             fmt::format("`fsid={}` of `{}` is also that of `{}` at {}: clients get the files of one under the name of "
                         "the other",
                         id, entry.directory, owner->directory, owner->origin.text()),
             id == "0" ? "only one directory can be the root of NFSv4" : "give each directory a number of its own"));
    }
  }
}

} // namespace

void diagnose_together(const std::vector<ExportsFile>& files, const HostFacts& facts, Diagnoses& diagnoses) {
  const auto expected = expected_etab(files, facts);
  diagnose_duplicates(expected, diagnoses);
  diagnose_overlaps(expected, diagnoses);
  diagnose_fsids(expected, diagnoses);
}

void diagnose_directory(const Export& entry, const HostFacts& facts, Diagnoses& diagnoses) {
  const auto& directory = entry.directory;
  if (!directory.starts_with('/'))
    diagnoses.push_back(
        at(Severity::error, "SF118", entry.origin,
           fmt::format("`{}` is a relative path: exportfs exports it, and no client can mount it", directory),
           "write the path from `/` on"));
  const auto found = facts.directories.find(directory);
  if (found == facts.directories.end())
    return;
  const auto& fact = found->second;
  using Kind = DirectoryFact::Kind;
  if (fact.kind == Kind::missing)
    diagnoses.push_back(
        at(Severity::warning, "SF123", entry.origin,
           fmt::format("`{}` does not exist: exportfs exports it all the same, and mounting it fails", directory)));
  if (fact.kind == Kind::other)
    diagnoses.push_back(at(Severity::error, "SF123", entry.origin, fmt::format("`{}` is no directory", directory)));
  const auto file_system = file_system_fact(fact.fs_type, fact.fs_options);
  if (file_system.exportable == Exportable::no) {
    diagnoses.push_back(
        at(Severity::error, "SF125", entry.origin,
           fmt::format("`{}` lies on {}, which cannot be exported: {}", directory, fact.fs_type, file_system.why)));
    return;
  }
  if (file_system.exportable != Exportable::needs_fsid || fact.kind != Kind::directory)
    return;
  for (const auto& client : entry.clients) {
    const auto settings = settings_of(client.defaults, client.options);
    if (settings && (settings->fsid || !settings->uuid.empty()))
      continue;
    diagnoses.push_back(at(Severity::error, "SF124", client.origin,
                           fmt::format("`{}` lies on {} and has no `fsid=`: clients cannot mount it, since {}",
                                       directory, fact.fs_type, file_system.why),
                           "add `fsid=` with a number that no other export has"));
    return; // the same for its other clients
  }
}

} // namespace sharefs::exports
