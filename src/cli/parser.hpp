#pragma once
#include "cli/command.hpp"
#include "cli/context.hpp"

namespace sharefs::cli {

struct Parsed {
  GlobalFlags flags;
  const CommandSpec* command = nullptr;
  Arguments arguments;
  std::optional<std::string> print; ///< --help or --version: text for stdout, then exit 0
};

/// argv (with argv[0]) -> what to do. `usage` errors have a "did you mean" hint for commands and options.
/// What follows the first `--` belongs to a wrapped command and is never read. `help [COMMAND]`, `conda help [COMMAND]`
/// and `version` are the options of these names. `width`: columns of help.
Result<Parsed> parse_command_line(const Argv& argv, std::size_t width = 80);

} // namespace sharefs::cli
