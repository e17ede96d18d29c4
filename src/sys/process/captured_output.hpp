#pragma once
// Keeps what this process and its children write to standard output.
#include "base/result.hpp"
#include "sys/process/fd.hpp"

#include <string>

namespace sharefs::sys {

class CapturedOutput {
 public:
  /// From now on descriptor 1 is a file without a name.
  static Result<CapturedOutput> begin();
  /// Descriptor 1 is what it was; what was written meanwhile, at most `limit` bytes of it.
  Result<std::string> end(std::size_t limit);

 private:
  Fd m_before, m_file;
};

} // namespace sharefs::sys
