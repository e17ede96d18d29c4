#pragma once
// Follows the variables of a shell text, above all PYTHONPATH, which brings the guard to the programs that it starts.
// Internal to script.cpp.
#include "base/path.hpp"
#include "base/text.hpp"
#include "cachefix/launch.hpp"
#include "cachefix/shell_text.hpp"

#include <algorithm>
#include <utility>

namespace sharefs::cachefix {

/// The variables after each command of a text, as far as the text itself gives them values, and whether PYTHONPATH was
/// lost.
class PythonPath {
 public:
  /// True if the command (`export`, `unset`, `read`) gives variables other values.
  static bool sets_variables(std::string_view command) {
    return is_listed(command, k_exports) || is_listed(command, k_changes);
  }
  /// Checks whether commands of a text list the names of variables. Called before the first command is read.
  void note_name_lists(const Commands& commands) {
    for (std::size_t i = 0; i < commands.size(); ++i)
      m_computed_names = m_computed_names || lists_names(commands, i);
  }
  /// Notes whether a command tests PYTHONPATH. `words` are those of the text, before variables are expanded; `behind`
  /// is what ends the command.
  void note_test(const Argv& words, char behind) {
    if (words.empty())
      return;
    const bool in_csh = contains(words, "$?PYTHONPATH"); // `if ( $?PYTHONPATH ) then`
    if (in_csh || (any_listed(words, "[ [[ test") && std::ranges::any_of(words, has_path) && !contains(words, "!="))) {
      m_tested = true;
      m_in_if = in_csh || words[0] == "if";
    } else if (m_in_if ? is_listed(words[0], "fi endif") : !m_chained) {
      m_tested = m_in_if = false;
    }
    m_chained = behind == 'a' || behind == 'o';
  }
  /// Returns what a command assigns, and removes assignments in front of the command from `words`. Also notes a loss of
  /// PYTHONPATH by `unset`, `read` or `for`. A name that ends in `+` is appended to.
  std::vector<Assignment> take_assignments(Argv& words, int line) {
    std::vector<Assignment> all;
    const auto take = [&](const std::string& word) {
      const auto equals = word.find('=', 1);
      if (equals == std::string::npos)
        return false;
      all.push_back({.name = word.substr(0, word.find_first_of("=[", 1)), .value = word.substr(equals + 1)});
      return true;
    };
    words.erase(words.begin(),
                std::ranges::find_if_not(words, [&](const auto& word) { return is_assignment(word) && take(word); }));
    const std::string first = words.empty() ? "" : words.front();
    const bool exports = is_listed(first, k_exports), by_word = is_listed(first, k_by_word);
    const bool takes_away = exports ? contains(words, "-n") : is_listed(first, k_changes);
    for (auto word = words.begin(); word != words.end() && (exports || takes_away); ++word)
      if (!(exports && take(*word)) && takes_away && (by_word ? *word == k_python_path : is_python_path(*word)) &&
          !names_path(join({word + 1, words.end()}, " ")) && !(m_tested && is_listed(first, "set setenv")))
        note_loss(line, (exports ? "-n" : first) + " PYTHONPATH");
    return all;
  }
  /// Gives a variable a value.
  void assign(std::string name, const std::string& value, int line) {
    const bool adds = name.ends_with('+');
    name.resize(name.size() - (adds ? 1 : 0));
    if (is_python_path(name) && !adds && !names_path(value) && !m_tested)
      note_loss(line, "PYTHONPATH=");
    else if (is_python_path(name) && holds_path(value)) // its old value was saved in a variable and is set again
      m_loss.reset();
    m_computed_names = m_computed_names || value == k_python_path;
    std::string& text = m_environment[name];
    const Argv words = words_of_value(value);
    const bool names_itself = std::ranges::any_of( // LAUNCH="$LAUNCH python"
        words, [&](const std::string& word) { return word.starts_with('$') && variable_at(word, 0) == name; });
    const std::string expanded = names_itself ? join(expand_once(words), " ") : value;
    text = (adds ? text : "") + expanded;
    text.resize(std::min(text.size(), k_most_value));
  }

  /// Begins a subshell: what it does to PYTHONPATH has no effect behind it.
  void begin_subshell() { m_subshells.push_back(m_loss); }
  /// Ends a subshell. `forget`: the state of PYTHONPATH is that from before it.
  void end_subshell(bool forget = true) {
    if (m_subshells.empty())
      return;
    if (forget)
      m_loss = std::move(m_subshells.back());
    m_subshells.pop_back();
  }
  /// Returns the loss that affects a program which is started now, once only; nullopt if there is none.
  std::optional<Mention> take_loss() {
    if (m_loss)
      std::ranges::replace(m_subshells, m_loss, std::optional<Mention>());
    return std::exchange(m_loss, std::nullopt);
  }

  [[nodiscard]] const Environment& environment() const { return m_environment; }
  /// Replaces `$RUN`, `${RUN}`, `${RUN[@]}` and `$@` by the words of the variable. `${RUN:-words}` as the first word
  /// becomes the words in the braces if the variable is not known.
  [[nodiscard]] Argv expand(const Argv& words) const {
    Argv all = words, before;
    for (int times = 0; times < k_most_values && all != before && all.size() < k_most_words; ++times)
      all = expand_once(std::exchange(before, all));
    return all;
  }
  /// Notes the command `cd DIRECTORY`.
  void change_directory(const std::string& directory) { m_directory = expand_start(directory); }
  /// Returns the paths at which a script of this name may lie: as written with the values of its variables, in the
  /// directory of the last `cd`, and for a name such as `$HERE/a.sh` beside the script that names it. None if the name
  /// holds other variables.
  [[nodiscard]] std::vector<std::string> find_files(const std::string& name) const {
    std::vector<std::string> all{expand_start(name)};
    if (all[0].empty())
      return {};
    if (!m_directory.empty())
      all.push_back(join_path(m_directory, all[0]));
    if (const auto self = m_environment.find("0"); name.starts_with('$') && self != m_environment.end())
      all.push_back(join_path(parent_path(self->second), all[0]));
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  }

 private:
  /// True if a variable in the text has the name PYTHONPATH in its value.
  [[nodiscard]] bool holds_path(std::string_view text) const {
    bool found = false;
    for (auto at = text.find('$'); at != std::string_view::npos && !found; at = text.find('$', at + 1)) {
      const auto known = m_environment.find(variable_at(text, at));
      found = known != m_environment.end() && known->first != k_python_path && has_path(known->second);
    }
    return found;
  }
  /// True if the text names PYTHONPATH, itself or by a variable. Such a value keeps the guard's directory.
  [[nodiscard]] bool names_path(std::string_view text) const { return has_path(text) || holds_path(text); }
  [[nodiscard]] bool is_python_path(const std::string& name) const {
    const bool prefix =
        name.starts_with("${!") && k_python_path.starts_with(name.substr(3, name.find_first_of("*@") - 3));
    return name == k_python_path || prefix || (m_computed_names && name.starts_with('$'));
  }
  void note_loss(int line, const std::string& subject) {
    m_loss = Mention{line, "SF407", subject, "changes PYTHONPATH, so what it starts is not guarded"};
  }
  [[nodiscard]] Argv expand_once(const Argv& words) const {
    Argv all;
    for (const std::string& given : words) {
      const std::string word = resolve_which(given);
      const bool whole = word.starts_with('$') &&
                         (word.find('}') == word.size() - 1 || word.find_first_of("{}/.:-=$ ", 1) == std::string::npos);
      const auto known = whole ? m_environment.find(variable_at(word, 0)) : m_environment.end();
      const auto sign = word.find_first_of("}-=+");
      const bool other = whole && word.starts_with("${") && sign != std::string::npos && word[sign] != '}';
      if (other && word[sign] == '+') // ${IMAGE:+--container-image=$IMAGE}
        std::ranges::move(split_words(word.substr(sign + 1, word.size() - sign - 2)), std::back_inserter(all));
      else if (known != m_environment.end() && !known->second.empty() && all.size() < k_most_words)
        std::ranges::move(words_of_value(known->second), std::back_inserter(all));
      else if (other && all.empty())
        all = split_words(word.substr(sign + 1, word.size() - sign - 2));
      else // env PYTHONPATH=$NEW
        all.push_back(holds_path(word) && has_path(word) && !word.ends_with(k_same) ? word + std::string(k_same)
                                                                                    : word);
    }
    return all;
  }
  /// Replaces the variable in front of a path by its value. A variable that is not known is taken away, so `$HERE/a.sh`
  /// becomes `a.sh`. Empty if other variables remain.
  [[nodiscard]] std::string expand_start(std::string name) const {
    for (int times = 0; name.starts_with('$') && times < k_most_values; ++times) {
      const auto slash = std::min(name.find('/'), name.size());
      const bool plain = name.find_first_of("(%#:-") >= slash; // false for $(...) and ${A%/*}
      const std::string rest = name.substr(plain ? slash : name.find_last_of(")}") + 1);
      const auto known = m_environment.find(plain ? variable_at(name, 0) : "");
      name = known != m_environment.end() ? known->second + rest : rest.substr(std::min<std::size_t>(1, rest.size()));
    }
    return name.find_first_of("$`") == std::string::npos ? name : std::string();
  }

  static constexpr std::size_t k_most_value = 4096; // bytes of a value
  static constexpr std::size_t k_most_words = 256;  // of one command
  static constexpr int k_most_values = 8;           // values that hold other variables, one within the other
  static constexpr std::string_view k_same = ":$PYTHONPATH";
  static constexpr std::string_view k_exports = "export declare typeset readonly local";
  static constexpr std::string_view k_changes = "unset unsetenv setenv read mapfile readarray for select set printf";
  static constexpr std::string_view k_by_word =
      "for select set printf"; // a `$NAME` behind these names no variable to change

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
