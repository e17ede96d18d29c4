#pragma once
// A command is a row: its name, its options, an example and a function. The parser, the help, the completion and the
// manual pages are made from these rows.
#include "base/argv.hpp"
#include "base/result.hpp"

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sharefs::fleet {
struct Request;
}

namespace sharefs::cli {

// Exit codes of every command but `run`, which returns the exit code of its child.
inline constexpr int k_exit_ok = 0;
inline constexpr int k_exit_failed = 1;
inline constexpr int k_exit_usage = 2;   ///< usage or configuration
inline constexpr int k_exit_pending = 3; ///< --check found something to do
inline constexpr int k_exit_partly = 4;  ///< some work was done, some failed
inline constexpr int k_exit_interrupted = 130;
/// Nobody reads standard output any more; shells report SIGPIPE with this code.
inline constexpr int k_exit_pipe_closed = 141;
// Exit codes of `run`, the same as those of env(1) and timeout(1).
inline constexpr int k_exit_run_failed = 125;
inline constexpr int k_exit_not_executable = 126;
inline constexpr int k_exit_not_found = 127;

constexpr int exit_code_of(const Error& error) {
  switch (error.code) {
  case ErrorCode::usage:
  case ErrorCode::config:
    return k_exit_usage;
  case ErrorCode::interrupted:
    return k_exit_interrupted;
  default:
    return k_exit_failed;
  }
}

/// The exit code of work in parts: 0 if no part is bad, 1 if no part is good, 4 otherwise.
constexpr int exit_code_for(std::size_t good, std::size_t bad) {
  return bad == 0 ? k_exit_ok : good == 0 ? k_exit_failed : k_exit_partly;
}

class Context;

struct OptionSpec {
  std::string_view names;      ///< "--timeout" or "-f,--force"; the last name is the key in Arguments
  std::string_view value = {}; ///< "SECONDS" for an option that takes a value; empty for a flag
  std::string_view help = {};
  std::string_view fallback = {}; ///< default value as text
  bool repeat = false;            ///< may be given more than once
};

struct PositionalSpec {
  std::string_view name = {}; ///< "NAME"; empty: the command takes none
  std::string_view help = {};
  std::size_t min = 0, max = 0; ///< max 0 with a name: any number
};

/// The arguments that the user gave; names have no dashes: flag("all"), value("timeout").
class Arguments {
 public:
  std::vector<std::string> positional;
  std::optional<Argv> rest; ///< the words behind the first `--` (only for commands that take a command)
  std::set<std::string, std::less<>> flags;
  std::map<std::string, std::vector<std::string>, std::less<>> values; ///< values that were given, and defaults

  [[nodiscard]] bool flag(std::string_view name) const { return flags.contains(name); }
  [[nodiscard]] std::optional<std::string> value(std::string_view name) const {
    const auto found = values.find(name);
    if (found == values.end() || found->second.empty())
      return std::nullopt;
    return found->second.back();
  }
  [[nodiscard]] std::vector<std::string> list(std::string_view name) const {
    const auto found = values.find(name);
    return found == values.end() ? std::vector<std::string>{} : found->second;
  }
  /// Reads an option with a duration in the notation of base/text.hpp. Error `usage` with the option's name if it is
  /// malformed.
  [[nodiscard]] Result<std::chrono::milliseconds> duration(std::string_view name) const;
  /// The same for a time that must be greater than zero; the hint offers `example`.
  [[nodiscard]] Result<std::chrono::milliseconds> time_limit(std::string_view name,
                                                             std::string_view example = "5s") const;
};
/// Returns the error `usage` for an option whose value cannot be read; `hint` says which values can.
tl::unexpected<Error> not_understood(std::string_view option, std::string_view value, std::string hint);

struct CommandSpec {
  std::string_view name;         ///< one line, for the list of commands
  std::string_view summary;      ///< one line for the list of commands
  std::string_view description;  ///< a paragraph, for the command's own --help
  std::string_view example = {}; ///< one or more command lines, each with a comment; a family has none
  bool changes = false;          ///< has --dry-run, --check and --yes, and changes the machine through execute()
  PositionalSpec positional = {};
  std::vector<OptionSpec> options = {};
  bool takes_command = false; ///< `[--] CMD...` behind the command's own arguments (run CMD, conda run ENV CMD)
  bool on_nodes = false;      ///< may run on other machines (--on)
  /// Runs on this machine before the nodes are asked, and may change the request to them.
  Result<void> (*before_nodes)(Context&, const Arguments&, fleet::Request&) = nullptr;
  /// Called first. Returns the exit code of a worker that has run the command as another user, or an error that ends
  /// the command; nullopt: `run` is called.
  std::optional<Result<int>> (*elsewhere)(Context&, const Arguments&) = nullptr;
  /// Returns the exit code. An Error is printed, and exit_code_of() gives its exit code. nullptr: the row is a family,
  /// which stands for the commands whose names begin with its own ("conda").
  Result<int> (*run)(Context&, const Arguments&) = nullptr;
};

/// Commands, and families in front of their commands, that stand under one title in the help.
struct CommandGroup {
  std::string_view title;
  std::vector<const CommandSpec*> commands;
};
/// Returns the groups in the order of the help. A new command is a file in src/cli/commands and a line in commands.cpp.
const std::vector<CommandGroup>& command_groups();
/// Returns the command, or the family, of this name; nullptr if there is none.
const CommandSpec* find_row(std::string_view name);

/// A row of the help: a name and its meaning, under a title.
struct HelpRow {
  std::string title, name, meaning;
};
/// Returns the words that may follow `prefix` ("" or "conda"), in the order of the help. Each stands for the command or
/// family of that name, or else for the first command that begins with it.
std::vector<HelpRow> words_below(const std::string& prefix);

// ---- the help ----

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
