#pragma once
#include "cli/command.hpp"
#include "cli/context.hpp"

namespace sharefs::cli {

struct Parsed {
  GlobalFlags flags;
  const CommandSpec* command = nullptr;
  Arguments arguments;
  std::optional<std::string> print; ///< the output of --help or --version; then the exit code is 0
};

/// Parses argv (with argv[0]). A `usage` error has a "did you mean" hint for commands and options. The words behind the
/// first `--` belong to the command to run and are never parsed. `help [COMMAND]`, `conda help [COMMAND]` and `version`
/// are read as the options of these names. `width` is the number of columns of the help.
Result<Parsed> parse_command_line(const Argv& argv, std::size_t width = 80);

} // namespace sharefs::cli
