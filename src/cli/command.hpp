#pragma once
// A command is a row: its name, its options, an example and a function. Parser, help, completion and the manual come
// from the same rows.
#include "base/argv.hpp"
#include "base/result.hpp"

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace sharefs::fleet {
struct Request;
}

namespace sharefs::cli {

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

/// What the user gave, names without dashes: flag("all"), value("timeout").
class Arguments {
 public:
  std::vector<std::string> positional;
  std::optional<Argv> rest; ///< what stood behind the first `--` (only for commands that take one)
  std::set<std::string, std::less<>> flags;
  std::map<std::string, std::vector<std::string>, std::less<>> values; ///< given ones and defaults

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
  /// A duration option in base/text.hpp's notation; `usage` error naming the option if it is malformed.
  [[nodiscard]] Result<std::chrono::milliseconds> duration(std::string_view name) const;
};

enum class Effect {
  reads,   ///< changes nothing
  changes, ///< gets --dry-run, --check and --yes, and goes through execute()
};

struct CommandSpec {
  std::string_view name;        ///< "mount", "export check", "conda link"
  std::string_view summary;     ///< one line for the list of commands
  std::string_view description; ///< a paragraph for its own --help
  std::string_view example;     ///< one or more command lines, each with a comment
  Effect effect = Effect::reads;
  PositionalSpec positional = {};
  std::vector<OptionSpec> options = {};
  bool takes_command = false; ///< `[--] CMD...`, behind the command's own words (run CMD, conda run ENV CMD)
  bool on_nodes = false;      ///< may run on other machines (--on)
  /// What is done here before that, and what the nodes are told besides.
  Result<void> (*before_nodes)(Context&, const Arguments&, fleet::Request&) = nullptr;
  /// Asked first: the exit code of a worker that has done it in another user's name; nullopt: `run` does it.
  Result<std::optional<int>> (*elsewhere)(Context&, const Arguments&) = nullptr;
  /// Returns the exit code; an Error is shown and mapped by exit_code_of.
  Result<int> (*run)(Context&, const Arguments&) = nullptr;
};

/// Commands whose names begin with one word: "conda".
struct CommandFamily {
  std::string_view name, summary, description;
  std::vector<const CommandSpec*> commands;
};
/// What stands together in the help.
struct CommandGroup {
  std::string_view title;
  std::vector<const CommandSpec*> commands;
  std::vector<CommandFamily> families = {};
};
/// In the order of the help. Adding a command: a file in src/cli/commands and a line in commands.cpp.
const std::vector<CommandGroup>& command_groups();
/// Every command, in that order.
const std::vector<const CommandSpec*>& commands();
/// nullptr: no family has this name.
const CommandFamily* find_family(std::string_view name);

} // namespace sharefs::cli
