#pragma once
// One line of the daemon's log: an observation or a decision, and the reason.
#include "base/diagnosis.hpp"

#include <chrono>
#include <string>

namespace sharefs::mounts::watch {

struct LogLine {
  /// started, config, state, moved, recover, left, recovered, failed, busy, staged, metrics, stopped
  std::string event = {};
  Severity severity = Severity::info;
  std::string mount = {}, target = {}; ///< empty: the line is not about a mount
  std::string state = {};              ///< state of the mount
  std::string message = {};            ///< one phrase
};

enum class LogForm {
  plain,
  json,    ///< a JSON object
  journal, ///< a JSON object after `<4>`, which systemd reads as the priority (sd-daemon(3))
};

/// Returns the line with its newline; times are UTC.
std::string format_log(const LogLine& line, LogForm form, std::chrono::system_clock::time_point now);

} // namespace sharefs::mounts::watch
