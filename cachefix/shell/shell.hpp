#pragma once
// Shell text as commands of words with their places, from the syntax tree that `shfmt --tojson` prints, and
// as argument vectors. Pure.
#include "base/argv.hpp"
#include "cachefix/budget.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace sharefs::cachefix {

/// Stands in a word's text for what cannot be known: an expansion of something that is not assigned in the same text.
inline constexpr char k_unknown_part = '\x01';
bool is_unknown(std::string_view text);

struct ShellWord {
  std::string text;               ///< after quotes and known variables are resolved
  std::size_t begin = 0, end = 0; ///< byte offsets in the text
  int line = 1, column = 1;
  std::string hidden; ///< the word of a --cache_dir that a variable in it was given in the same text; else empty
};

struct ShellCommand {
  enum class Kind { call, exported /* `export NAME=value`, `declare -x`: words are the assignments */ };
  Kind kind = Kind::call;
  std::vector<ShellWord> assignments; ///< NAME=value in front of a command, or alone
  std::vector<ShellWord> words;
  std::vector<ShellWord> unknown; ///< exported: words whose names are not known (`export "$line"`)
  std::string input;              ///< what a here-document or a here-string gives it to read
  std::string reads;              ///< the file that `<` names
  std::string function;           ///< in whose body it stands; empty: in none
  bool certain = false;           ///< runs once, in this shell: not in a function, a loop, a branch or a subshell
};

struct ShellText {
  std::vector<ShellCommand> commands; ///< in the order of the text
  std::size_t first_statement = 0;    ///< offset: behind the comments at the top
  std::set<std::string> assigned;     ///< variables that it assigns anywhere, in whichever way
  std::set<std::string> expanded;     ///< variables that words of it are made of
  std::set<std::string> exported;     ///< by `export NAME` and `declare -x`
  std::set<std::string> fixed;        ///< by `readonly` and `declare -r`
  bool exports_all = false;           ///< by `set -a`, somewhere
  std::vector<ShellWord> defaults;    ///< `${NAME:=value}`, as NAME=value
};

/// What is known of variables, and as "1", "2", ... and "@" of the text's own arguments. What the text assigns goes
/// before it.
using ShellVariables = std::map<std::string, std::string>;

/// `tree` is the JSON of `text`; nullopt if it is not what shfmt prints, or would cost more than the budget has.
std::optional<ShellText> read_shell(const std::string& text, const std::string& tree, Budget& budget,
                                    const ShellVariables& known = {});

/// One command of the text as an argv of its own: assignments in front become words of env(1).
struct CommandLine {
  Argv argv;
  std::vector<const ShellWord*> words; ///< per word of argv; nullptr for the `env` that is not there
  [[nodiscard]] bool has_env() const { return argv.size() > 1 && argv[0] == "env" && words[0] == nullptr; }
};
/// Exported variables and those of no command are left out if they are in `not_these`.
CommandLine command_line(const ShellCommand& command, const std::set<std::string>& not_these);

/// The name of `NAME=value`.
std::string variable_in(const std::string& assignment);

} // namespace sharefs::cachefix
