#pragma once
// Diagnosis: a finding that sharefs reports, with a stable code. Rooms return lists of them.
#include "base/fields.hpp"

#include <compare>
#include <cstddef>
#include <string>
#include <vector>

namespace sharefs {

enum class Severity { info, warning, error };
const char* to_string(Severity severity); ///< "info", "warning", "error"

struct Diagnosis {
  Severity severity = Severity::warning;
  std::string code;    ///< stable: "SF" and three digits; docs/diagnoses explains each
  std::string subject; ///< what it is about: a path, `file:line:column`, a share's or host's name
  std::string message; ///< the cause, one line, no final period
  std::string hint;    ///< the cure; may be empty
  std::string fix;     ///< a command that cures it, ready to paste; may be empty

  friend auto operator<=>(const Diagnosis&, const Diagnosis&) = default;
};
template <FieldsOf<Diagnosis> D> auto fields(D& d) {
  return named("severity", d.severity, "code", d.code, "subject", d.subject, "message", d.message, "hint", d.hint,
               "fix", d.fix);
}
using Diagnoses = std::vector<Diagnosis>;

bool has_errors(const Diagnoses& diagnoses);
/// Returns how many of them have this severity.
std::size_t count(const Diagnoses& diagnoses, Severity severity);

} // namespace sharefs
