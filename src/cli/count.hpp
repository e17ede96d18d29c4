#pragma once
#include "base/diagnosis.hpp"

#include <algorithm>

namespace sharefs::cli {

/// Returns how many diagnoses have this severity.
inline std::size_t count(const Diagnoses& found, Severity severity) {
  return static_cast<std::size_t>(std::ranges::count(found, severity, &Diagnosis::severity));
}

} // namespace sharefs::cli
