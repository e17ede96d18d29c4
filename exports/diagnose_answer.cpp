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
Origin find_stop(const ExportsFile& file, const std::vector<Outcome>& outcomes) {
  std::size_t next = outcomes.size();
  while (next > 0 && !outcomes[next - 1].exported())
    --next;
  return next < outcomes.size() ? file.exports[next].origin : Origin{file.name, 1, 1};
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

/// Returns the client or the first option that holds a line end; "" if there is none.
std::string find_line_end(const Export& entry) {
  const auto has_it = [](const std::string& text) { return text.find('\n') != std::string::npos; };
  const auto option = std::ranges::find_if(entry.options, has_it);
  return has_it(entry.client) ? entry.client : option == entry.options.end() ? "" : *option;
}

Diagnosis diagnose_line_end(const Export& entry, const std::string& word) {
  return at(Severity::error, "SF141", entry.origin,
            fmt::format("exportfs writes the line end in `{}` to etab as it is: mountd may take what stands before it "
                        "for an export to others, and cannot read what stands behind it",
                        word),
            "write the client and its options without `\\012`");
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
    const auto origin = find_stop(files[number], expected.outcomes[number]);
    by_file[origin.file].push_back(at(Severity::error, "SF157", origin,
                                      fmt::format("exportfs says: {}; it reads no further in this file", text),
                                      "see exports(5) for the values of its options"));
    lost[number];
  }
  for (const auto& [file, found] : by_file)
    for (const auto& one : found)
      if (one.severity == Severity::error)
        known.insert(one.subject);
  for (std::size_t number = 0; number < files.size(); ++number)
    for (std::size_t i = 0; i < files[number].exports.size(); ++i) {
      const auto& entry = files[number].exports[i];
      const bool is_dropped = i < files[number].taken && !expected.outcomes[number][i].position;
      if (known.contains(entry.origin.text()))
        continue;
      auto& found = by_file[entry.origin.file];
      if (const auto word = find_line_end(entry); is_dropped && expected.broken && !word.empty())
        found.push_back(diagnose_line_end(entry, word));
      else if (std::ranges::any_of(entry.client, is_control))
        found.push_back(at(Severity::error, "SF109", entry.origin,
                           fmt::format("the client `{}` holds a control character: no host, network or netgroup has "
                                       "such a name",
                                       entry.client),
                           "remove it; `cat -A FILE` shows such bytes"));
      else if (const auto given_up = lost.find(number); is_dropped && given_up != lost.end())
        given_up->second.push_back(entry);
      else if (is_dropped)
        found.push_back(diagnose_dropped(entry));
    }
  for (const auto& [file, entries] : lost)
    if (!entries.empty())
      by_file[entries.front().origin.file].push_back(lost_entries(entries));
  for (const auto& file : files)
    if (!expected.not_asked.empty())
      diagnose_newer(file, by_file[file.name]);
}

} // namespace sharefs::exports
