// What exportfs itself says about the files, where it is not said already in our own words.
#include "exports/diagnose_parts.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace sharefs::exports {

namespace {

/// "xprtsec=tls" of `unknown keyword "xprtsec=tls"`.
std::string unknown_option(std::string_view text) {
  constexpr std::string_view k_unknown = "unknown keyword \"";
  if (!text.starts_with(k_unknown))
    return "";
  const auto option = text.substr(k_unknown.size());
  return std::string(option.substr(0, option.find('"')));
}

/// Of the entry that exportfs complains of, which stands on this line of the text; of the line, if none is known.
Origin place_of(const Complaint& complaint, const ExportsFile& file, const std::string& option) {
  const auto read = file.text ? parse(*file.text, file.name).exports : file.exports;
  const auto has_option = [&](const std::vector<std::string>& options) {
    return std::ranges::any_of(options, [&](const std::string& one) { return one.starts_with(option); });
  };
  for (std::size_t i = 0; i < read.size() && i < file.exports.size(); ++i)
    if (read[i].origin.line == complaint.line && (has_option(read[i].options) || has_option(read[i].defaults)))
      return file.exports[i].origin;
  return {file.name, complaint.line, 1};
}

Diagnosis of_complaint(const Complaint& complaint, const ExportsFile& file) {
  const auto option = unknown_option(complaint.text);
  const auto origin = place_of(complaint, file, option);
  const auto name = option.substr(0, option.find('='));
  if (const auto since = option_since(option); !since.empty())
    return at(
        Severity::error, "SF121", origin,
        fmt::format("the installed nfs-utils does not know `{}`: exportfs drops the entry and reads no further in "
                    "this file",
                    name),
        fmt::format("`{}` came with nfs-utils {}", name, since));
  return at(Severity::error, "SF157", origin,
            fmt::format("exportfs says: {}; it reads no further in this file", complaint.text));
}

} // namespace

void diagnose_answer(const std::vector<ExportsFile>& files, const ExpectedEtab& expected,
                     std::map<std::string, Diagnoses>& by_file) {
  if (!expected.not_asked.empty())
    return;
  std::map<std::size_t, std::vector<Export>> lost; // by file that exportfs gives up, though its text looks right
  for (const auto& complaint : expected.complaints)
    if (files[complaint.file].complete) {
      auto found = of_complaint(complaint, files[complaint.file]);
      by_file[found.subject.substr(0, found.subject.find(':'))].push_back(std::move(found));
      lost[complaint.file];
    }
  std::set<std::string> known; // places with an error
  for (const auto& [file, found] : by_file)
    for (const auto& one : found)
      if (one.severity == Severity::error)
        known.insert(one.subject);
  for (const auto& [file, entry, winner] : expected.dropped) {
    if (winner || known.contains(entry.origin.text()))
      continue;
    if (const auto given_up = lost.find(file); given_up != lost.end())
      given_up->second.push_back(entry);
    else
      by_file[entry.origin.file].push_back(
          at(Severity::error, "SF157", entry.origin,
             fmt::format("exportfs does not export `{}` to `{}`", entry.directory, entry.client),
             "run `exportfs -ra` and read what it says"));
  }
  for (const auto& [file, entries] : lost)
    if (!entries.empty())
      by_file[entries.front().origin.file].push_back(lost_entries(entries));
}

} // namespace sharefs::exports
