#pragma once
// Follows the variables of a shell text, above all PYTHONPATH, which brings the guard to the programs that it starts.
#include "cachefix/launch.hpp"
#include "cachefix/shell_text.hpp"

namespace sharefs::cachefix {

/// True if the word is the output of a command: `$(...)`, `<(...)` or backquotes.
bool is_substitution(std::string_view word);

/// The variables after each command of a text, as far as the text itself gives them values, and whether PYTHONPATH was
/// lost.
class PythonPath {
 public:
  /// True if the command (`export`, `unset`, `read`) gives variables other values.
  static bool sets_variables(std::string_view command);
  /// Checks whether commands of a text list the names of variables. Called before the first command is read.
  void note_name_lists(const Commands& commands);
  /// Notes whether a command tests PYTHONPATH. `words` are those of the text, before variables are expanded; `behind`
  /// is what ends the command.
  void note_test(const Argv& words, char behind);
  /// Returns what a command assigns, and removes assignments in front of the command from `words`. Also notes a loss of
  /// PYTHONPATH by `unset`, `read` or `for`. A name that ends in `+` is appended to.
  std::vector<Assignment> take_assignments(Argv& words, int line);
  /// Gives a variable a value.
  void assign(std::string name, const std::string& value, int line);

  /// Begins a subshell: what it does to PYTHONPATH has no effect behind it.
  void begin_subshell() { m_subshells.push_back(m_loss); }
  /// Ends a subshell. `forget`: the state of PYTHONPATH is that from before it.
  void end_subshell(bool forget = true);
  /// Returns the loss that affects a program which is started now, once only; nullopt if there is none.
  std::optional<Mention> take_loss();

  [[nodiscard]] const Environment& environment() const { return m_environment; }
  /// Replaces `$RUN`, `${RUN}`, `${RUN[@]}` and `$@` by the words of the variable. `${RUN:-words}` as the first word
  /// becomes the words in the braces if the variable is not known.
  [[nodiscard]] Argv expand(const Argv& words) const;
  /// Returns the words of a variable's value, expanded.
  [[nodiscard]] Argv expand_value(const std::string& value) const;
  /// Notes the command `cd DIRECTORY`.
  void change_directory(const std::string& directory) { m_directory = expand_start(directory); }
  /// Returns the paths at which a script of this name may lie: as written with the values of its variables, in the
  /// directory of the last `cd`, and for a name such as `$HERE/a.sh` beside the script that names it. None if the name
  /// holds other variables.
  [[nodiscard]] std::vector<std::string> find_files(const std::string& name) const;

 private:
  /// True if a variable in the text has the name PYTHONPATH in its value.
  [[nodiscard]] bool holds_path(std::string_view text) const;
  /// True if the text names PYTHONPATH, itself or by a variable. Such a value keeps the guard's directory.
  [[nodiscard]] bool names_path(std::string_view text) const;
  [[nodiscard]] bool is_python_path(const std::string& name) const;
  void note_loss(int line, const std::string& subject);
  [[nodiscard]] Argv expand_once(const Argv& words) const;
  /// Replaces the variable in front of a path by its value. A variable that is not known is taken away, so `$HERE/a.sh`
  /// becomes `a.sh`. Empty if other variables remain.
  [[nodiscard]] std::string expand_start(std::string name) const;

  Environment m_environment;     ///< what the text has assigned so far
  std::string m_directory;       ///< directory of the last `cd`
  bool m_computed_names = false; ///< names of variables are listed or stand in variables: any may be PYTHONPATH
  bool m_tested = false;         ///< `[ -z "$PYTHONPATH" ]` or the like decides whether the command runs
  bool m_in_if = false;          ///< that was the test of an `if`, which counts up to its end
  bool m_chained = false;        ///< `&&` or `||` stands behind the command before
  std::optional<Mention> m_loss; ///< the command that lost PYTHONPATH, until a program is started
  std::vector<std::optional<Mention>> m_subshells; ///< m_loss as it was in front of each open subshell
};

} // namespace sharefs::cachefix
