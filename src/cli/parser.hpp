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
/// argv is split at the first `--` before CLI11 sees it, so a wrapped command's own options are never ours.
Result<Parsed> parse_command_line(const Argv& argv);

} // namespace sharefs::cli
