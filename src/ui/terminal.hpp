#pragma once
// The abilities of the terminal, and colours as SGR sequences: no other file knows these sequences.
#include "ui/console.hpp"

#include <string>
#include <string_view>

namespace sharefs::ui {

/// Returns the SGR sequence that begins the colour; "" for Colour::none.
std::string_view sequence_of(Colour colour);
/// Returns `text` in that colour if `on`; control characters are made visible in either case.
std::string painted(Colour colour, std::string_view text, bool on);

/// The facts that decide about colour and width, as the environment has them; a variable that is not set is empty.
struct TerminalFacts {
  bool in = false, out = false, err = false; ///< whether the stream is a terminal
  std::string no_color, clicolor_force, term, columns;
  int window_width = 0; ///< as the terminal reports it; 0: unknown
};
/// Decides about colour and width; pure.
ConsoleOptions decide_console(const TerminalFacts& facts);

} // namespace sharefs::ui
