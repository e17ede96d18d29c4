#pragma once
#include "cli/command.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace sharefs::cli {

const std::vector<OptionSpec>& global_options(); ///< of every command
const std::vector<OptionSpec>& change_options(); ///< of the commands that change something

/// The list of commands; with a `prefix` ("conda") only those below it.
std::string overview(const std::string& prefix = {});
/// --help of one command: usage, description, arguments, options, examples.
std::string command_help(const CommandSpec& command);

/// Words filled into lines of a readable width, every line after the first indented.
std::string fill(std::string_view text, std::size_t indent = 0, std::size_t first_column = 0);

} // namespace sharefs::cli
