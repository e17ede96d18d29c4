#pragma once
// One line of the daemon's log: what was seen or decided, and why.
#include "base/diagnosis.hpp"

#include <chrono>
#include <string>

namespace sharefs::mounts::watch {

struct LogLine {
  std::string event = {}; ///< started, config, state, recover, left, recovered, failed, busy, metrics, stopped
  Severity severity = Severity::info;
  std::string mount = {}, target = {}; ///< empty: of no mount
  std::string state = {};              ///< of the mount
  std::string message = {};            ///< one phrase
};

enum class LogForm {
  plain,
  json,    ///< an object
  journal, ///< an object behind `<4>`, which systemd takes for its priority (sd-daemon(3))
};

/// With its line end; times are UTC.
std::string format_log(const LogLine& line, LogForm form, std::chrono::system_clock::time_point now);

} // namespace sharefs::mounts::watch
