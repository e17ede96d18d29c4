#include "ui/paint.hpp"

#include "base/visible.hpp"

#include <charconv>

namespace sharefs::ui {

namespace {

constexpr int k_default_width = 80;

int width_of(const TerminalFacts& facts) {
  if (facts.window_width > 0)
    return facts.window_width;
  int columns = 0;
  const auto& text = facts.columns;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), columns);
  const bool valid = error == std::errc{} && end == text.data() + text.size() && columns > 0 && columns <= 10'000;
  return valid ? columns : k_default_width;
}

} // namespace

std::string_view sequence_of(Colour colour) {
  switch (colour) {
  case Colour::none:
    return "";
  case Colour::red:
    return "\x1b[31m";
  case Colour::green:
    return "\x1b[32m";
  case Colour::yellow:
    return "\x1b[33m";
  case Colour::blue:
    return "\x1b[34m";
  case Colour::bold:
    return "\x1b[1m";
  case Colour::dim:
    return "\x1b[2m";
  }
  return "";
}

std::string painted(Colour colour, std::string_view text, bool on) {
  if (!on || colour == Colour::none)
    return visible(text);
  return std::string(sequence_of(colour)) + visible(text) + "\x1b[0m";
}

// no-color.org: set and not empty means no colour, whatever else is set; bixense.com/clicolors: FORCE overrides isatty.
ConsoleOptions decide_console(const TerminalFacts& facts) {
  ConsoleOptions options;
  options.in_terminal = facts.in;
  options.out_terminal = facts.out;
  options.err_terminal = facts.err;
  options.width = width_of(facts);
  if (!facts.no_color.empty())
    return options;
  options.force_colour = !facts.clicolor_force.empty() && facts.clicolor_force != "0";
  const bool able = !facts.term.empty() && facts.term != "dumb";
  options.colour = options.force_colour || (able && (facts.out || facts.err));
  return options;
}

} // namespace sharefs::ui
