#pragma once
// A shell text, looked through for words only: which programs it starts, which caches it names, and what in it takes
// the guard away from them. Nothing of it is run or changed, and variables are followed only as far as the text itself
// gives them values: the guard decides in the programs.
#include "cachefix/decision.hpp"
#include "cachefix/launch.hpp"

namespace sharefs::cachefix {

/// How the commands of a file are started.
enum class Started {
  run,
  submitted, ///< to a batch system, for which its directives count
  sourced,   ///< what it leaves of PYTHONPATH, others get
};

/// A file with commands that a text, or a command line, starts or reads.
struct NamedScript {
  std::string name;
  Argv arguments = {}; ///< $0, $1, ...
  Started how = Started::run;
  friend bool operator==(const NamedScript&, const NamedScript&) = default;
};

struct ScriptReport {
  std::vector<Mention> programs, caches, losses;
  std::vector<NamedScript> scripts; ///< others, as far as their names are literal
};

/// `facts` are asked about hostfiles of launchers. `arguments` begin with $0.
ScriptReport read_script(const std::string& text, Facts& facts, const Argv& arguments = {},
                         Started how = Started::sourced);
/// The same of one program of a command line, which is a text of one command whose own words lose nothing.
ScriptReport read_program(const Launch& launch, const Program& program);

} // namespace sharefs::cachefix
