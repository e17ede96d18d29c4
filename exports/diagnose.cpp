#include "exports/diagnose.hpp"

#include "base/text.hpp"
#include "exports/diagnose_parts.hpp"
#include "exports/settings.hpp"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <tuple>

namespace sharefs::exports {

namespace {

/// "FILE:LINE:COLUMN" -> the number behind the last colon, which is cut off; 0 if there is none.
int cut_number(std::string_view& text) {
  const auto colon = text.rfind(':');
  int value = 0;
  if (colon == std::string_view::npos)
    return 0;
  const auto digits = text.substr(colon + 1);
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (read.ec != std::errc() || read.ptr != digits.data() + digits.size())
    return 0;
  text = text.substr(0, colon);
  return value;
}

std::tuple<int, int> place_of(const Diagnosis& diagnosis) {
  std::string_view subject = diagnosis.subject;
  const int column = cut_number(subject);
  const int line = cut_number(subject);
  return {line, column};
}

} // namespace

Diagnosis at(Severity severity, std::string code, const Origin& origin, std::string message, std::string hint) {
  return {severity, std::move(code), origin.text(), std::move(message), std::move(hint), ""};
}

Diagnoses diagnose(const std::vector<ExportsFile>& files, const HostFacts& facts) {
  Diagnoses together;
  diagnose_together(files, facts, together);
  Diagnoses all;
  for (const auto& file : files) {
    Diagnoses mine = file.diagnoses;
    for (const auto* list : {&file.exports, &file.lost})
      for (const auto& entry : *list) {
        diagnose_directory(entry, facts, mine);
        for (const auto& client : entry.clients) {
          diagnose_client(client, facts, mine);
          diagnose_rights(client, facts, mine);
        }
      }
    const auto others = std::stable_partition(together.begin(), together.end(), [&](const Diagnosis& diagnosis) {
      return !diagnosis.subject.starts_with(file.name + ":");
    });
    mine.insert(mine.end(), others, together.end());
    together.erase(others, together.end());
    std::stable_sort(mine.begin(), mine.end(),
                     [](const Diagnosis& a, const Diagnosis& b) { return place_of(a) < place_of(b); });
    all.insert(all.end(), mine.begin(), mine.end());
  }
  all.insert(all.end(), together.begin(), together.end()); // of places outside of the files: sharefs.yaml
  return all;
}

Diagnoses diagnose_entry(const Export& entry) {
  Diagnoses diagnoses;
  for (const auto& client : entry.clients)
    if (const auto settings = settings_of(client.defaults, client.options); !settings) {
      const auto& error = settings.error();
      diagnoses.push_back(
          at(Severity::error, error.unknown ? "SF107" : "SF108", client.origin, error.message, error.hint));
      return diagnoses; // all clients of an entry have the same options
    }
  if (auto why = unwritable(entry); !why.empty())
    diagnoses.push_back(at(Severity::error, "SF129", entry.origin, std::move(why)));
  return diagnoses;
}

} // namespace sharefs::exports
