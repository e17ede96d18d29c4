#pragma once
// Splits a shell text into commands and their words. Nothing is expanded or run.
#include "base/argv.hpp"

namespace sharefs::cachefix {

/// One command. Quotes are removed; what the shell would expand stays as it is written.
struct Command {
  Argv words = {};
  int line = 1;
  std::string input = {};         ///< text of a here-document or a here-string
  std::string from = {}, to = {}; ///< file of `<` (also of `3<`), file of `>`
  std::string other = {};         ///< file of any other redirection
  char behind = ';';              ///< what ends it: ; & newline ( ) or `|`, with `a` for && and `o` for ||; a command
                                  ///< without words has `$` in front of a substitution, and a backquote behind it
  bool is_array = false;          ///< the words are NAME= and the elements of an array
  bool is_directive = false;      ///< a directive of a batch system: `#SBATCH -n 2` as the words `sbatch -n 2 job.sh`
};

using Commands = std::vector<Command>;

/// Returns the commands in their order; those of a substitution come before the command that contains it. A command
/// without words stands for a parenthesis or a redirection alone.
Commands commands_of(std::string_view text);
/// Returns what `echo` or `printf` with these words writes.
std::string written_by(const Argv& words);

} // namespace sharefs::cachefix
