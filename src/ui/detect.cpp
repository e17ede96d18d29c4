// detect_console: declared in ui/console.hpp. The only place of this room that looks at the process.
#include "ui/paint.hpp"

#include <cstdlib>
#include <sys/ioctl.h>
#include <unistd.h>

namespace sharefs::ui {

namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name); // NOLINT(concurrency-mt-unsafe): before any thread
  return value == nullptr ? "" : value;
}

int window_width() {
  winsize size{};
  for (const int descriptor : {STDOUT_FILENO, STDERR_FILENO})
    if (::isatty(descriptor) != 0 && ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
      return size.ws_col;
  return 0;
}

} // namespace

ConsoleOptions detect_console() {
  return decide_console({.in = ::isatty(STDIN_FILENO) != 0,
                         .out = ::isatty(STDOUT_FILENO) != 0,
                         .err = ::isatty(STDERR_FILENO) != 0,
                         .no_color = environment("NO_COLOR"),
                         .clicolor_force = environment("CLICOLOR_FORCE"),
                         .term = environment("TERM"),
                         .columns = environment("COLUMNS"),
                         .window_width = window_width()});
}

} // namespace sharefs::ui
