#pragma once
// Captures the standard output of this process and its children.
#include "base/result.hpp"
#include "sys/process/fd.hpp"

#include <string>

namespace sharefs::sys {

class CapturedOutput {
 public:
  /// Replaces descriptor 1 by a file in memory (memfd_create(2)).
  static Result<CapturedOutput> begin();
  /// Restores descriptor 1. Returns the output since begin(), at most its first `limit` bytes.
  Result<std::string> end(std::size_t limit);

 private:
  Fd m_before, m_file;
};

} // namespace sharefs::sys
