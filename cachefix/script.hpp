#pragma once
// Searches the words of a shell text for the programs that it starts, the caches that it names, and what takes the
// guard away from its programs. Nothing is run or changed. Variables are expanded only if the text itself gives them
// values, which is enough because the guard decides in the programs.
#include "cachefix/launch.hpp"

namespace sharefs::cachefix {

/// How the commands of a file are started.
enum class Started {
  run,
  submitted, ///< to a batch system, which reads the directives of the script
  sourced,   ///< by the shell that reads it, so a change of PYTHONPATH remains behind it
};

/// A file of commands that a text or a command line starts or reads.
struct NamedScript {
  std::string name;
  Started how = Started::run;
  friend bool operator==(const NamedScript&, const NamedScript&) = default;
};

struct ScriptReport {
  std::vector<Mention> programs, caches, losses;
  std::vector<Mention> defaults; ///< where PYTHONPATH gets a value that counts only if it was not set before
  std::vector<NamedScript> scripts; ///< other scripts whose names are known
};

/// Reads the text of a script. Hostfiles of launchers and the like are read through `facts`. Other scripts may lie
/// beside `script`, or in a directory of `path`, the variable PATH.
ScriptReport read_script(const std::string& text, Facts& facts, const NamedScript& script,
                         const std::string& path = {});
/// Reads one program of a command line as a text of one command. A loss by the words of that command is not reported.
ScriptReport read_program(const Launch& launch, const Program& program);

} // namespace sharefs::cachefix
