#pragma once
// What a text gives, in one line each: "CODE severity LINE:COLUMN".
#include "exports/diagnose.hpp"

#include <string>
#include <vector>

namespace sharefs::exports::test {

inline std::vector<std::string> told(const Diagnoses& diagnoses) {
  std::vector<std::string> lines;
  for (const auto& diagnosis : diagnoses)
    lines.push_back(diagnosis.code + " " + to_string(diagnosis.severity) + " " +
                    diagnosis.subject.substr(diagnosis.subject.find(':') + 1));
  return lines;
}

inline Diagnoses diagnoses_of(const std::string& text, const HostFacts& facts = {}) {
  return diagnose({parse(text, "f")}, facts);
}

/// "DIRECTORY CLIENT SETTINGS" for each client.
inline std::vector<std::string> entries(const std::vector<Export>& exports) {
  std::vector<std::string> lines;
  for (const auto& line : exports)
    for (const auto& client : line.clients) {
      const auto settings = settings_of(client.defaults, client.options);
      lines.push_back(line.directory + " " + client.name + " " + (settings ? summary(*settings) : "?"));
    }
  return lines;
}

} // namespace sharefs::exports::test
