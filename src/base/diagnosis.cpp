#include "base/diagnosis.hpp"

#include <algorithm>

namespace sharefs {

const char* to_string(Severity severity) {
  switch (severity) {
  case Severity::info:
    return "info";
  case Severity::warning:
    return "warning";
  case Severity::error:
    return "error";
  }
  return "error";
}

bool has_errors(const Diagnoses& diagnoses) {
  return std::ranges::any_of(diagnoses, [](const Diagnosis& d) { return d.severity == Severity::error; });
}

} // namespace sharefs
