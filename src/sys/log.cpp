#include "sys/log.hpp"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace sharefs::sys {

void set_verbose(bool verbose) {
  if (!verbose) { // the default logger is turned off: it writes to stdout, which is for data
    spdlog::set_level(spdlog::level::off);
    return;
  }
  spdlog::set_default_logger(spdlog::stderr_logger_mt("sharefs"));
  spdlog::set_pattern("%H:%M:%S.%e %l %v");
  spdlog::set_level(spdlog::level::debug);
}

} // namespace sharefs::sys
