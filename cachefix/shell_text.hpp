#pragma once
// Splits a shell text into commands and their words, and says what words mean to a shell. Nothing is expanded or run.
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
                                  ///< without words has `$` or `<` in front of a substitution, and a backquote
                                  ///< behind it
  bool appends = false;           ///< `>>`: what the file held before stays
  bool is_array = false;          ///< the words are NAME= and the elements of an array
  bool is_directive = false;      ///< a directive of a batch system: `#SBATCH -n 2` as the words `sbatch -n 2 job.sh`
};

using Commands = std::vector<Command>;

/// Returns the commands in their order; those of a substitution come before the command that contains it. A command
/// without words stands for a parenthesis or a redirection alone.
Commands commands_of(std::string_view text);
/// Returns what `echo` or `printf` with these words writes.
std::string written_by(const Argv& words);

/// True if the word assigns a variable or an element of one: `A=b`, `A+=b`, `A[1]=b`.
bool is_assignment(const std::string& word);
/// True if the word is the output of a command: `$(...)`, `<(...)` or backquotes.
bool is_substitution(std::string_view word);
inline constexpr std::string_view k_python_path = "PYTHONPATH";
/// True if the text holds PYTHONPATH as a whole name.
bool has_path(std::string_view text);
/// Returns the name of the variable at a `$`: A for `$A`, `${A...}` and `${!A}`; `@` for `$1`, `$*` and the like.
std::string variable_at(std::string_view text, std::size_t dollar);
/// Returns the words of a variable's value; `$(...)` and `${...}` are one.
Argv words_of_value(const std::string& value);
/// Returns `singularity` for `$(which singularity)`, and any other word as it is.
std::string resolve_which(const std::string& word);
/// True if a command lists names of variables that may include PYTHONPATH: `compgen -v`, `env | grep ^PY`, but not
/// `env | grep ^SLURM`.
bool lists_names(const Commands& commands, std::size_t at);
/// True if something may run what this command prints, alone or in a group: a file, or a pipe with a program that runs
/// its input, gets it.
bool is_output_run(const Commands& commands, std::size_t at);

} // namespace sharefs::cachefix
