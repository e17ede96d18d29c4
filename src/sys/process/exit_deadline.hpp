#pragma once
// A process that must have ended by a time, whatever in it hangs.
#include <chrono>
#include <string>

namespace sharefs::sys {

/// While it lives: once the deadline passes, the process writes `text` to its standard output and ends with `code`.
class ExitDeadline {
 public:
  ExitDeadline(std::chrono::milliseconds deadline, std::string text, int code);
  ~ExitDeadline();
  ExitDeadline(const ExitDeadline&) = delete;
  ExitDeadline& operator=(const ExitDeadline&) = delete;
};

} // namespace sharefs::sys
