#pragma once
#include "cli/command.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sharefs::cli {

std::span<const OptionSpec> global_options();    ///< they apply to every command; usable before main()
const std::vector<OptionSpec>& change_options(); ///< they apply to commands that change something

/// Returns the columns for text in a terminal of `columns`: never so many that lines are hard to read.
std::size_t text_width(int columns);

/// Returns the --help of the command, or of the family, that `path` ("conda link", "conda", "") names.
std::string help_of(const std::string& path, std::size_t width);
/// Returns what `sharefs help options` prints: the options that many commands have. The help of a command names them in
/// one line.
std::string help_of_options(std::size_t width);

/// Fills words into lines of `width` columns. The first line is to stand in the column `indent`, and every further one
/// is indented to it.
std::string fill(std::string_view text, std::size_t width, std::size_t indent = 0);

} // namespace sharefs::cli
