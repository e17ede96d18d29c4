#pragma once
// Argument vectors: how sharefs names a command to run. A shell is never given one; quoting is for display only.
#include <string>
#include <string_view>
#include <vector>

namespace sharefs {

/// A command and its arguments, byte for byte as execve(2) gets them.
using Argv = std::vector<std::string>;

/// `word` so that a POSIX shell reads it back as exactly these bytes: unchanged if no character is special, else in
/// single quotes; control characters and bytes that are no valid UTF-8 in $'...' (bash, zsh, ksh) so that a terminal
/// shows and copies them. A leading `~` and `name=` forms are quoted where a shell would expand them.
std::string shell_quote(std::string_view word);
/// The same in single quotes, whatever the bytes: for a shell that knows no $'...', and not for a person to read.
std::string single_quote(std::string_view word);
/// True for `NAME=...`, which a shell takes as an assignment in front of a command and execve(2) as a program's name.
bool assigns_variable(std::string_view word);
/// A hint for such a word where a program was expected.
std::string hint_for_assignment(std::string_view word);
/// The words quoted and joined by spaces: safe to copy and paste.
std::string shell_join(const Argv& argv);

} // namespace sharefs
