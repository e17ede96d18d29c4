#pragma once
#include "cli/command.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
} // namespace CLI

namespace sharefs::cli {

std::span<const OptionSpec> global_options();    ///< they apply to every command; usable before main()
const std::vector<OptionSpec>& change_options(); ///< they apply to commands that change something

/// Returns the columns for text in a terminal of `columns`: never so many that lines are hard to read.
std::size_t text_width(int columns);

/// The help of a command lists its own options, and names the global ones in one line.
inline constexpr const char* k_own_group = "Options";
inline constexpr const char* k_global_group = "Options of every command";
inline constexpr const char* k_options_page = "options"; ///< `sharefs help options` explains the global options

/// Adds the options to CLI11, which parses them and prints their help.
void add_options(CLI::App& app, std::span<const OptionSpec> specs, const std::string& group);

/// Returns the --help of the command, or of the family, that `path` ("conda link", "conda", "") names; `app` is its
/// parser.
std::string help_of(const CLI::App& app, const std::string& path, std::size_t width);

/// Fills words into lines of `width` columns; every line after the first is indented.
std::string fill(std::string_view text, std::size_t width, std::size_t indent = 0, std::size_t first_column = 0);

} // namespace sharefs::cli
