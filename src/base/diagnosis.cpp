#include "base/diagnosis.hpp"

#include "base/text.hpp"

namespace sharefs {

const char* to_string(Severity severity) {
  static constexpr std::array k_names{"info", "warning", "error"};
  return name_in(k_names, severity);
}

bool has_errors(const Diagnoses& diagnoses) {
  return std::ranges::any_of(diagnoses, [](const Diagnosis& d) { return d.severity == Severity::error; });
}

} // namespace sharefs
