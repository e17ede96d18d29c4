#pragma once
// Splits a shell text into the words of its commands. Nothing is expanded or run.
#include "base/argv.hpp"

namespace sharefs::cachefix {

/// The words of one command. Quotes are removed; what the shell would expand stays as it is written. A text in the text
/// is one word: what stands in quotes, in a here-document (with the line end in front of it), in `$(...)`, whose
/// commands have lists of their own, too, or in the parentheses of an array. Comments are left out, but for directives
/// of a batch system (`#SBATCH -n 2`) and `#!` lines.
struct WordList {
  Argv words = {};
  int line = 1;
  std::string to = {}; ///< the file that gets its output; `|` for a pipe and for the command around `$(...)`
};

using WordLists = std::vector<WordList>;

/// Returns the commands in their order; those of a substitution come before the command that contains it. A list
/// without words stands for the output of parentheses.
WordLists split_into_lists(std::string_view text);

} // namespace sharefs::cachefix
