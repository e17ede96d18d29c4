#pragma once
// The one JSON document that `--json` prints: {schema, command, ok, plan, results, diagnoses, error}, and further
// fields of the command. Fields are added, never changed.
#include "base/diagnosis.hpp"
#include "base/result.hpp"
#include "plan/plan.hpp"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace sharefs::ui {

struct Envelope {
  std::string command;
  bool ok = true;
  std::optional<plan::Plan> plan;
  std::optional<plan::Report> report;
  Diagnoses diagnoses;
  std::optional<Error> error;
  nlohmann::ordered_json fields = nlohmann::ordered_json::object(); ///< the command's own, placed after `ok`

  /// Returns the document, indented by 2, with a final newline; bytes that are not UTF-8 become U+FFFD.
  [[nodiscard]] std::string text() const;
};

} // namespace sharefs::ui
