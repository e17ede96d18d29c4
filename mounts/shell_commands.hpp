#pragma once
// Reads the commands of a shell script, as rc.local is one. Nothing is expanded or run.
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace sharefs::mounts {

/// A simple command: its words without quotes. Variables and other expansions stay as they are written.
struct ShellCommand {
  std::size_t line = 1; ///< where it begins, from 1
  std::vector<std::string> words;
  bool always = true; ///< false: in parentheses, or behind `&&`, `||` or `|`
};
/// Returns the commands in their order, without comments and here-documents.
std::vector<ShellCommand> shell_commands(std::string_view script);

/// Returns the line of the first command behind which nothing of the script runs: an `exit`, or an `exec` of a program,
/// that is in no `if`, loop or function. 0: there is none.
std::size_t ending_line(std::string_view script);

} // namespace sharefs::mounts
