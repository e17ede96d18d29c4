#include "exports/diagnose.hpp"

#include "exports/diagnose_parts.hpp"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

namespace sharefs::exports {

Diagnoses diagnose(const std::vector<ExportsFile>& files, const ExpectedEtab& expected, const HostFacts& facts) {
  std::map<std::string, Diagnoses> by_file; // sharefs.yaml too, whose entries stand in our own file
  for (const auto& file : files) {
    auto& syntax = by_file[file.name];
    syntax.insert(syntax.end(), file.diagnoses.begin(), file.diagnoses.end());
    for (const auto* list : {&file.exports, &file.lost})
      for (std::span<const Export> rest = *list; !rest.empty(); rest = rest.subspan(first_line(rest).size())) {
        auto& found = by_file[rest.front().line.file];
        diagnose_directory(first_line(rest), facts, found);
        diagnose_mount_points(first_line(rest), facts, found);
        for (const auto& entry : first_line(rest)) {
          diagnose_client(entry, facts, found);
          diagnose_rights(entry, facts, found);
        }
      }
  }
  diagnose_together(expected, by_file);
  diagnose_reach(expected, facts, by_file);
  Diagnoses all;
  const auto take = [&](Diagnoses found) {
    // Of one file, so only the numbers of line and column differ.
    std::stable_sort(found.begin(), found.end(), [](const Diagnosis& a, const Diagnosis& b) {
      return ::strverscmp(a.subject.c_str(), b.subject.c_str()) < 0;
    });
    all.insert(all.end(), found.begin(), found.end());
  };
  for (const auto& file : files)
    take(std::exchange(by_file[file.name], {}));
  for (auto& [name, found] : by_file)
    take(std::move(found));
  return all;
}

Diagnoses diagnose_entry(const Export& entry) {
  if (const auto settings = settings_of(entry.defaults, entry.options); !settings) {
    const auto& error = settings.error();
    return {at(Severity::error, error.unknown ? "SF107" : "SF108", entry.origin, error.message, error.hint)};
  }
  const auto names_flavours = [](const std::string& option) { return option.starts_with("sec="); };
  if (!entry.options.empty() && std::ranges::any_of(entry.defaults, names_flavours))
    return {at(Severity::error, "SF150", entry.origin,
               fmt::format("the options of `{}` would not reach the flavours of `sec=` in the options of all clients",
                           entry.client),
               "write `sec=` with the options of each client")};
  if (auto why = unwritable(entry); !why.empty())
    return {at(Severity::error, "SF129", entry.line, std::move(why))};
  return {};
}

} // namespace sharefs::exports
