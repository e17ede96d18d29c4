#pragma once
#include "cli/command.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
} // namespace CLI

namespace sharefs::cli {

const std::vector<OptionSpec>& global_options(); ///< of every command
const std::vector<OptionSpec>& change_options(); ///< of the commands that change something

/// Columns for text in a terminal of `columns`: never so wide that it is hard to read.
std::size_t text_width(int columns);

/// The help of a command shows its own options, and names the global ones in one line.
inline constexpr const char* k_own_group = "Options";
inline constexpr const char* k_global_group = "Options of every command";
inline constexpr const char* k_options_page = "options"; ///< `sharefs help options`: what each of those means

/// Options as CLI11 reads and shows them.
void add_options(CLI::App& app, const std::vector<OptionSpec>& specs, const std::string& group);

/// --help of the command, or of the commands below it, that `path` ("conda link", "conda", "") names and `app` reads.
std::string help_of(const CLI::App& app, const std::string& path, std::size_t width);

/// Words filled into lines of `width` columns, every line after the first indented.
std::string fill(std::string_view text, std::size_t width, std::size_t indent = 0, std::size_t first_column = 0);

} // namespace sharefs::cli
