#pragma once
#include "cli/command.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace sharefs::cli {

const std::vector<OptionSpec>& global_options(); ///< of every command
const std::vector<OptionSpec>& change_options(); ///< of the commands that change something

/// Columns for text in a terminal of `columns`: never so wide that it is hard to read.
std::size_t text_width(int columns);

/// The commands in their groups, families as one row.
std::string overview(std::size_t width);
/// The commands of a family ("conda") and what it is for.
std::string family_help(const CommandFamily& family, std::size_t width);
/// --help of one command: usage, description, arguments, options, examples.
std::string command_help(const CommandSpec& command, std::size_t width);
/// What `sharefs help options` prints.
std::string options_help(std::size_t width);

/// Words filled into lines of `width` columns, every line after the first indented.
std::string fill(std::string_view text, std::size_t width, std::size_t indent = 0, std::size_t first_column = 0);

} // namespace sharefs::cli
