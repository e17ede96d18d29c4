#include "base/diagnosis.hpp"

#include "base/text.hpp"

namespace sharefs {

const char* to_string(Severity severity) {
  static constexpr std::array k_names{"info", "warning", "error"};
  return name_in(k_names, severity);
}

bool has_errors(const Diagnoses& diagnoses) {
  return count(diagnoses, Severity::error) > 0;
}

std::size_t count(const Diagnoses& diagnoses, Severity severity) {
  return static_cast<std::size_t>(std::ranges::count(diagnoses, severity, &Diagnosis::severity));
}

} // namespace sharefs
