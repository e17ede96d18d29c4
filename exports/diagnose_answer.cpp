// Reports the messages of exportfs about the files, where sharefs has no diagnosis of its own.
#include "base/text.hpp"
#include "exports/client.hpp"
#include "exports/diagnose.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace sharefs::exports {

namespace {

/// Returns the entry at which exportfs stopped: the one with the bad option, or else the one after the last entry that
/// it has taken; nullptr if there is none.
const Export* find_stop(const Complaint& complaint, const ExportsFile& file, const ExpectedEtab& expected) {
  if (complaint.entry)
    return &file.exports[*complaint.entry];
  const auto& positions = expected.positions[complaint.file];
  std::size_t next = 0;
  for (std::size_t i = 0; i < file.exports.size(); ++i)
    if (positions[i])
      next = i + 1;
  return next < file.exports.size() ? &file.exports[next] : nullptr;
}

Diagnosis diagnose_complaint(const Complaint& complaint, const Origin& origin) {
  const auto& option = complaint.option;
  const auto name = option.substr(0, option.find('='));
  if (const auto since = option_since(option); !since.empty() && complaint.text.starts_with("unknown"))
    return at(
        Severity::error, "SF121", origin,
        fmt::format("the installed nfs-utils does not know `{}`: exportfs drops the entry and reads no further in "
                    "this file",
                    name),
        fmt::format("`{}` came with nfs-utils {}", name, since));
  return at(Severity::error, "SF157", origin,
            fmt::format("exportfs says: {}; it reads no further in this file", complaint.text));
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
  for (const auto& complaint : expected.complaints) {
    const auto& file = files[complaint.file];
    const auto newer = std::ranges::find(file.newer, complaint.option, &std::pair<std::string, Origin>::first);
    const bool is_newer = newer != file.newer.end(); // then it stands before the error that parse() has found
    if (!file.complete && !is_newer)
      continue;
    const auto* const entry = find_stop(complaint, file, expected);
    const auto origin = is_newer ? newer->second : entry != nullptr ? entry->origin : Origin{file.name, 1, 1};
    by_file[origin.file].push_back(diagnose_complaint(complaint, origin));
    known.insert(entry == nullptr ? "" : entry->origin.text());
    lost[complaint.file];
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
    for (const auto& [option, place] : file.newer)
      if (!expected.not_asked.empty())
        by_file[file.name].push_back(at(Severity::warning, "SF121", place,
                                        fmt::format("`{}` came with nfs-utils {}: an older exportfs drops the entry "
                                                    "and reads no further in this file",
                                                    option.substr(0, option.find('=')), option_since(option))));
}

} // namespace sharefs::exports
