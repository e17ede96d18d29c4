#pragma once
// Ends this process at a deadline, even if one of its threads hangs.
#include <chrono>
#include <string>

namespace sharefs::sys {

/// If the deadline passes while this object exists, the process writes `text` to its standard output and ends with the
/// exit code `code`.
class ExitDeadline {
 public:
  ExitDeadline(std::chrono::milliseconds deadline, std::string text, int code);
  ~ExitDeadline();
  ExitDeadline(const ExitDeadline&) = delete;
  ExitDeadline& operator=(const ExitDeadline&) = delete;
};

} // namespace sharefs::sys
