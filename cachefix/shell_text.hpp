#pragma once
// A shell text as the words that its commands have. Nothing is expanded or run.
#include "base/argv.hpp"

namespace sharefs::cachefix {

/// Quotes are taken off, and what the shell would expand stays as it is written.
struct Command {
  Argv words = {};
  int line = 1;
  std::string input = {};         ///< of a here-document or a here-string
  std::string from = {}, to = {}; ///< the files of `<`, also of `3<`, and of `>`
  std::string other = {};         ///< the file of any other redirection
  char behind = ';';              ///< `|`: the next command reads what it writes; `a` is &&, `o` is ||, or ( )
  bool is_array = false;          ///< NAME= and the words of an array
  bool is_directive = false;      ///< a comment of a batch system: `#SBATCH --export=NONE` as `sbatch --export=NONE`
};

using Commands = std::vector<Command>;

/// In their order; those of a substitution stand before the command around it. In front of a parenthesis, of a `|` or
/// of a redirection there may be no words.
Commands commands_of(std::string_view text);
/// What echo and printf write.
std::string written_by(const Argv& words);

} // namespace sharefs::cachefix
