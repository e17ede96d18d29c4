#pragma once
// The terminal's abilities, and colour by SGR sequences: only here.
#include "ui/console.hpp"

#include <string>
#include <string_view>

namespace sharefs::ui {

/// The SGR sequence that begins the colour; "" for none.
std::string_view sequence_of(Colour colour);
/// `text` in that colour if `on`; control characters are made visible either way.
std::string painted(Colour colour, std::string_view text, bool on);

/// The facts that decide about colour and width, as the environment has them; empty strings for variables that are not
/// set.
struct TerminalFacts {
  bool in = false, out = false, err = false; ///< is it a terminal?
  std::string no_color, clicolor_force, term, columns;
  int window_width = 0; ///< of the terminal's own answer; 0: unknown
};
ConsoleOptions decide_console(const TerminalFacts& facts);

} // namespace sharefs::ui
