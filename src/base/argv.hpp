#pragma once
// Argument vectors: sharefs names a command to run by one. A shell never gets one; quoting for one is for
// display only. Units of systemd have quotes of their own.
#include <string>
#include <string_view>
#include <vector>

namespace sharefs {

/// A command and its arguments, byte for byte as execve(2) gets them.
using Argv = std::vector<std::string>;

/// Returns `word` in a form that a POSIX shell reads back as exactly these bytes: unchanged if no character is special,
/// else in single quotes. Control characters and bytes that are not valid UTF-8 are written in $'...' (bash, zsh, ksh),
/// so that a terminal shows and copies them. A leading `~` and `name=` are quoted where a shell would expand them.
std::string shell_quote(std::string_view word);
/// Returns `word` in single quotes, whatever its bytes are. For shells without $'...'; the result is not meant for
/// people.
std::string single_quote(std::string_view word);
/// True for `NAME=...`. In front of a command a shell reads it as an assignment; execve(2) reads it as a program's
/// name.
bool assigns_variable(std::string_view word);
/// The hint for a word like `NAME=...` in the place of a program.
std::string hint_for_assignment(std::string_view word);
/// The words quoted and joined by spaces: safe to copy and paste.
std::string shell_join(const Argv& argv);

/// Doubles each `%`, which begins a specifier everywhere in a unit (systemd.unit(5)).
std::string unit_value(std::string_view text);
/// Quotes a word of a list in a unit, such as RequiresMountsFor= (systemd.syntax(7)).
std::string unit_word(std::string_view text);
/// Quotes a word of ExecStart=, in which `$` begins a variable (systemd.service(5)).
std::string unit_command(std::string_view text);

} // namespace sharefs
