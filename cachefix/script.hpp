#pragma once
// A shell text, looked through for words only: which programs it starts, which caches it names, and what in it takes
// the guard away from them. Nothing of it is changed, and no expansion is followed: the guard decides in the programs.
#include "cachefix/launchers/walk.hpp"

#include <string>
#include <vector>

namespace sharefs::cachefix {

/// One finding in a text.
struct Mention {
  int line = 1;
  std::string code;    ///< of a loss: SF402, SF404, SF407
  std::string subject; ///< the word
  std::string says;    ///< what it does; of a program its launchers, of a cache its value
  friend bool operator==(const Mention&, const Mention&) = default;
};

struct ScriptReport {
  std::vector<Mention> programs, caches, losses;
  Argv scripts; ///< other scripts that it starts or reads, as far as their names are literal
};

ScriptReport read_script(const std::string& text);

/// What takes the guard away from a command; `walk` is that of its words. Empty `code`: nothing does.
Mention loss_of(const Argv& words, const Walk& walk);

} // namespace sharefs::cachefix
