#include "mounts/watch/log_line.hpp"

#include "base/text.hpp"
#include "base/visible.hpp"

#include <ctime>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace sharefs::mounts::watch {

std::string format_log(const LogLine& line, LogForm form, std::chrono::system_clock::time_point now) {
  const auto time = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::chrono::system_clock::to_time_t(now)));
  if (form == LogForm::plain) {
    const auto mark = line.severity == Severity::info ? "" : std::string(to_string(line.severity)) + ": ";
    return visible(fmt::format("{} {}{}{}", time, mark, line.mount.empty() ? "" : line.mount + ": ", line.message)) +
           "\n";
  }
  nlohmann::ordered_json json{
      {"time", time}, {"level", to_string(line.severity)}, {"event", line.event}, {"message", to_utf8(line.message)}};
  const auto put = [&](const char* name, const std::string& text) {
    if (!text.empty())
      json[name] = to_utf8(text);
  };
  put("mount", line.mount);
  put("target", line.target);
  put("state", line.state);
  // syslog(3): 6 informational, 4 warning, 3 error
  const auto* priority = line.severity == Severity::info ? "<6>" : line.severity == Severity::warning ? "<4>" : "<3>";
  return (form == LogForm::journal ? priority : "") + json.dump() + "\n";
}

} // namespace sharefs::mounts::watch
