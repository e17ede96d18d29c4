#include "ui/terminal.hpp"

#include "base/number.hpp"
#include "base/visible.hpp"

#include <array>
#include <cstdlib>
#include <sys/ioctl.h>
#include <unistd.h>

namespace sharefs::ui {

namespace {

constexpr int k_default_width = 80, k_widest = 10'000;

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

std::string_view sequence_of(Colour colour) {
  constexpr std::array<std::string_view, 7> k_sequences{"",         "\x1b[31m", "\x1b[32m", "\x1b[33m",
                                                        "\x1b[34m", "\x1b[1m",  "\x1b[2m"}; // in the order of the enum
  return k_sequences.at(static_cast<std::size_t>(colour));
}

std::string painted(Colour colour, std::string_view text, bool on) {
  if (!on || colour == Colour::none)
    return visible(text);
  return std::string(sequence_of(colour)) + visible(text) + "\x1b[0m";
}

// no-color.org: if it is set and not empty there is no colour, whatever else is set; bixense.com/clicolors: FORCE
// overrides isatty.
ConsoleOptions decide_console(const TerminalFacts& facts) {
  ConsoleOptions options;
  options.in_terminal = facts.in;
  options.out_terminal = facts.out;
  options.err_terminal = facts.err;
  const auto columns = parse_number<int>(facts.columns).value_or(0);
  options.width = facts.window_width > 0               ? facts.window_width
                  : columns > 0 && columns <= k_widest ? columns
                                                       : k_default_width;
  if (!facts.no_color.empty())
    return options;
  options.force_colour = !facts.clicolor_force.empty() && facts.clicolor_force != "0";
  const bool able = !facts.term.empty() && facts.term != "dumb";
  options.colour = options.force_colour || (able && (facts.out || facts.err));
  return options;
}

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
