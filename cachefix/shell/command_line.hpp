#pragma once
#include "base/argv.hpp"
#include "cachefix/shell/shell.hpp"

#include <set>

namespace sharefs::cachefix {

/// One command of the text as an argv of its own: assignments in front become words of env(1).
struct CommandLine {
  Argv argv;
  std::vector<const ShellWord*> words; ///< per word of argv; nullptr for the `env` that is not there
  [[nodiscard]] bool has_env() const { return argv.size() > 1 && argv[0] == "env" && words[0] == nullptr; }
};
/// Exported variables and those of no command are left out if they are in `not_these`.
CommandLine command_line(const ShellCommand& command, const std::set<std::string>& not_these);

/// The name of `NAME=value`.
std::string variable_in(const std::string& assignment);

} // namespace sharefs::cachefix
