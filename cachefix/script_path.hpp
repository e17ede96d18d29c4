#pragma once
// What a shell text does to PYTHONPATH, which brings the guard to the programs that it starts.
#include "cachefix/launch.hpp"
#include "cachefix/shell_text.hpp"

#include <map>

namespace sharefs::cachefix {

inline constexpr std::size_t k_most_words = 256; ///< of a command whose variables are words

/// Where a text stands, command by command: the variables, as far as the text itself gives them values, and what has
/// become of PYTHONPATH.
class PythonPath {
 public:
  /// `export`, `unset`, `read`: does the command give variables other values?
  static bool sets_variables(std::string_view command);
  /// All commands of a text, before the first is read.
  void expect(const Commands& commands);
  /// The words of one command, before those that they stand for take their place.
  void note_test(const Argv& words);
  /// What the command assigns, in front of its words, from which it is taken away, or by `export`. Notes what else it
  /// does to PYTHONPATH: `unset`, `read`, `for`. A name that ends in `+` gets more.
  std::vector<Assignment> take_assigned(Argv& words, int line);
  /// `words` is the value as a command's words; none: the variable keeps those that it has.
  void assign(std::string name, const std::string& value, const Argv& words, int line);
  /// Words alone; those from before.
  Argv give(const std::string& variable, Argv words) { return std::exchange(m_words[variable], std::move(words)); }

  /// What is done to PYTHONPATH in a subshell has no effect behind it.
  void begin_subshell() { m_subshells.push_back(m_lost); }
  void end_subshell(bool forget = true);
  /// A program is started: what has taken the guard away from it.
  std::optional<Mention> take_loss();

  [[nodiscard]] const Environment& environment() const { return m_environment; }
  [[nodiscard]] const Argv& words(const std::string& variable) const;
  /// `$RUN`, `${RUN}`, `${RUN[@]}`, `$@` as the words that it was last given; of `${RUN:-words}` in the place of the
  /// program else these.
  [[nodiscard]] Argv expanded(const Argv& words) const;
  /// `cd DIRECTORY`
  void enter(const std::string& directory) { m_directory = with_values(directory); }
  /// Where a script of this name may lie: `$ROOT/a.sh` where ROOT says, `$HERE/a.sh` of a variable that is not known
  /// beside the script that names it, above it, or in the working directory. None if it cannot be told.
  [[nodiscard]] std::vector<std::string> files(const std::string& name) const;

 private:
  /// Does a variable in the text have the name in its value?
  [[nodiscard]] bool holds_it(std::string_view text) const;
  /// Or the text itself? As a value it keeps what PYTHONPATH was.
  [[nodiscard]] bool mentions(std::string_view text) const;
  [[nodiscard]] bool is_path(const std::string& name) const;
  void lose(int line, const std::string& subject);
  /// Without the variable in front, which has its value, if it is known, or names a directory that is not: `$HERE/a.sh`
  /// as `a.sh`. Empty: there are others.
  [[nodiscard]] std::string with_values(std::string name) const;

  Environment m_environment;                       ///< what the text has assigned so far
  std::map<std::string, Argv> m_words;             ///< the same as words
  std::string m_directory;                         ///< of the last `cd`
  bool m_by_name = false;                          ///< names of variables come from variables: any may be PYTHONPATH
  bool m_looked = false, m_in_if = false;          ///< at `[ -z "$PYTHONPATH" ]`: the command above, and up to `fi`
  bool m_if_empty = false;                         ///< so it is only set where it is empty
  std::optional<Mention> m_lost;                   ///< what PYTHONPATH is lost by, until a program is started
  std::vector<std::optional<Mention>> m_subshells; ///< the same in front of each that is open
};

} // namespace sharefs::cachefix
