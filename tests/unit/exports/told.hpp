#pragma once
// What a text gives, in one line each: "CODE severity LINE:COLUMN".
#include "exports/ask.hpp"
#include "exports/diagnose.hpp"

#include <string>
#include <vector>

namespace sharefs::exports {

inline std::vector<std::string> told(const Diagnoses& diagnoses) {
  std::vector<std::string> lines;
  for (const auto& diagnosis : diagnoses)
    lines.push_back(diagnosis.code + " " + to_string(diagnosis.severity) + " " +
                    diagnosis.subject.substr(diagnosis.subject.find(':') + 1));
  return lines;
}

inline Diagnoses diagnoses_of(const std::string& text, const HostFacts& facts = {}) {
  const std::vector<ExportsFile> files{parse(text, "f")};
  return diagnose(files, predict_from_text(files, facts), facts);
}

/// "DIRECTORY CLIENT SETTINGS" for each client.
inline std::vector<std::string> entries(const std::vector<Export>& exports) {
  std::vector<std::string> lines;
  for (const auto& entry : exports)
    lines.push_back(entry.directory + " " + entry.client + " " + summary(entry.settings));
  return lines;
}

/// Without their places, for comparisons.
inline std::vector<Export> without_places(std::vector<Export> exports) {
  for (auto& entry : exports)
    entry.origin = entry.line = {};
  return exports;
}

/// An export as parse() makes it, from one line `line` of a file.
inline Export entry(const std::string& directory, const std::string& client, std::vector<std::string> options,
                    int line = 1) {
  const auto settings = settings_of(options);
  return {directory, client, settings, std::move(options), {"y", line, 5}, {"y", line, 3}};
}

} // namespace sharefs::exports
