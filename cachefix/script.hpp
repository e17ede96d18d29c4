#pragma once
// A shell text, looked through for words only: which programs it starts, which caches it names, and what in it takes
// the guard away from them. Nothing of it is changed, and no expansion is followed: the guard decides in the programs.
#include "cachefix/decision.hpp"
#include "cachefix/facts.hpp"

namespace sharefs::cachefix {

struct ScriptReport {
  std::vector<Mention> programs, caches, losses;
  Argv scripts; ///< other scripts that it starts or reads, as far as their names are literal
};

/// `facts` are asked about hostfiles of launchers.
ScriptReport read_script(const std::string& text, Facts& facts);

} // namespace sharefs::cachefix
