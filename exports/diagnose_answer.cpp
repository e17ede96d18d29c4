// Reports the messages of exportfs about the files, where sharefs has no diagnosis of its own.
#include "base/text.hpp"
#include "exports/client.hpp"
#include "exports/diagnose.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace sharefs::exports {

namespace {

/// Returns the place at which exportfs stopped: the entry behind the last one that it has taken.
Origin find_stop(const ExportsFile& file, const std::vector<std::optional<std::size_t>>& positions) {
  std::size_t next = positions.size();
  while (next > 0 && !positions[next - 1])
    --next;
  return next < positions.size() ? file.exports[next].origin : Origin{file.name, 1, 1};
}

/// Reports options of which it is not known whether exportfs knows them, once for each line.
void diagnose_newer(const ExportsFile& file, Diagnoses& found) {
  std::set<std::pair<Origin, std::string>> reported;
  for (const auto& entry : file.read())
    for (const auto& option : entry.options)
      if (const auto since = option_since(option); !since.empty() && reported.emplace(entry.line, option).second)
        found.push_back(at(Severity::warning, "SF121", entry.origin,
                           fmt::format("`{}` came with nfs-utils {}: an older exportfs drops the entry and reads no "
                                       "further in this file",
                                       option.substr(0, option.find('=')), since)));
}

Diagnosis diagnose_dropped(const Export& entry) {
  const auto& client = entry.client;
  const bool resolves = !canonical_address(client).empty() && !has_scope(client);
  if (kind_of(client) != ClientKind::host || resolves)
    return at(Severity::error, "SF157", entry.origin,
              fmt::format("exportfs does not export `{}` to `{}`", entry.directory, client),
              "run `exportfs -ra` and read what it says");
  if (has_scope(client))
    return at(
        Severity::error, "SF122", entry.origin,
        fmt::format("`{}` is no address on this host, where `{}` is no interface for it: exportfs drops the entry "
                    "without an error",
                    client, client.substr(client.find('%') + 1)),
        "run `ip link` for the interfaces that there are; only link-local addresses (fe80::) have one");
  return at(Severity::error, "SF122", entry.origin,
            fmt::format("`{}` does not resolve: exportfs drops the entry without an error", client),
            "put the name into /etc/hosts, or write the address");
}

} // namespace

void diagnose_answer(const std::vector<ExportsFile>& files, const ExpectedEtab& expected,
                     std::map<std::string, Diagnoses>& by_file) {
  std::map<std::size_t, std::vector<Export>> lost; // by file that exportfs stops reading although its text looks right
  std::set<std::string> known;                     // places that have an error already
  for (const auto& [number, text] : expected.complaints) {
    const auto origin = find_stop(files[number], expected.positions[number]);
    by_file[origin.file].push_back(at(Severity::error, "SF157", origin,
                                      fmt::format("exportfs says: {}; it reads no further in this file", text),
                                      "see exports(5) for the values of its options"));
    lost[number];
  }
  for (const auto& [file, found] : by_file)
    for (const auto& one : found)
      if (one.severity == Severity::error)
        known.insert(one.subject);
  for (const auto& file : files)
    for (const auto& entry : file.exports)
      if (std::ranges::any_of(entry.client, is_control) && known.insert(entry.origin.text()).second)
        by_file[entry.origin.file].push_back(
            at(Severity::error, "SF109", entry.origin,
               fmt::format("the client `{}` holds a control character: no host, network or netgroup has such a name",
                           entry.client),
               "remove it; `cat -A FILE` shows such bytes"));
  for (const auto& [file, entry, winner] : expected.dropped) {
    if (winner || known.contains(entry.origin.text()))
      continue;
    if (const auto given_up = lost.find(file); given_up != lost.end())
      given_up->second.push_back(entry);
    else
      by_file[entry.origin.file].push_back(diagnose_dropped(entry));
  }
  for (const auto& [file, entries] : lost)
    if (!entries.empty())
      by_file[entries.front().origin.file].push_back(lost_entries(entries));
  for (const auto& file : files)
    if (!expected.not_asked.empty())
      diagnose_newer(file, by_file[file.name]);
}

} // namespace sharefs::exports
