#include "cachefix/script_path.hpp"

#include "base/path.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cctype>

namespace sharefs::cachefix {
namespace {

constexpr std::size_t k_most_value = 4096; // bytes of a value
constexpr std::size_t k_most_words = 256;  // of one command
constexpr int k_most_values = 8;           // values that hold other variables, one within the other
constexpr std::string_view k_path = "PYTHONPATH", k_same = ":$PYTHONPATH";
constexpr std::string_view k_exports = "export declare typeset readonly local";
constexpr std::string_view k_changes = "unset unsetenv setenv read mapfile readarray for select set printf";
constexpr std::string_view k_by_word = "for select set printf"; // a `$NAME` behind these names no variable to change

bool is_assignment(const std::string& word) {
  const auto name = word.substr(0, word.find_first_of("+=["));
  return name.size() < word.size() && assigns_variable(name + "=");
}

bool is_of_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

/// True if the text holds PYTHONPATH as a whole name.
bool has_path(std::string_view text) {
  for (auto at = text.find(k_path); at != std::string_view::npos; at = text.find(k_path, at + 1)) {
    const auto end = at + k_path.size();
    if ((at == 0 || !is_of_name(text[at - 1])) && (end == text.size() || !is_of_name(text[end])))
      return true;
  }
  return false;
}

/// Returns the name of the variable at a `$`: A for `$A`, `${A...}` and `${!A}`; `@` for `$1`, `$*` and the like.
std::string variable_at(std::string_view text, std::size_t dollar) {
  const auto begin = std::min(text.find_first_not_of("{!\"", dollar + 1), text.size());
  auto end = begin;
  while (end < text.size() && is_of_name(text[end]))
    ++end;
  const std::string name(text.substr(begin, end == begin ? 1 : end - begin));
  return name == "*" || (name[0] >= '1' && name[0] <= '9') ? "@" : name;
}

/// True if a command lists names of variables that may include PYTHONPATH: `compgen -v`, `env | grep ^PY`, but not
/// `env | grep ^SLURM`.
bool lists_names(const Commands& commands, std::size_t at) {
  const Argv& words = commands[at].words;
  if (words.empty() || !(words[0] == "compgen" || words == Argv{"env"} || words == Argv{"printenv"}))
    return false;
  const bool filtered = commands[at].behind == '|' && at + 1 < commands.size();
  return std::ranges::none_of(filtered ? commands[at + 1].words : words, [](const std::string& word) {
    const auto begin = std::min(word.find_first_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ"), word.size());
    const auto end = std::min(word.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ", begin), word.size());
    return end - begin > 2 && !k_path.starts_with(word.substr(begin, end - begin));
  });
}

/// Returns the words of a variable's value; `$(...)` and `${...}` are one.
Argv words_of_value(const std::string& value) {
  const bool whole = is_substitution(value) || (value.starts_with("${") && value.find('}') == value.size() - 1);
  return whole ? Argv{value} : split_words(value);
}

/// Returns `singularity` for `$(which singularity)`, and any other word as it is.
std::string resolve_which(const std::string& word) {
  if (!is_listed(word, "$(which* `which* $(command*"))
    return word;
  const Argv parts = split_words(word);
  return parts.back().substr(0, parts.back().find_first_of(")`"));
}

} // namespace

bool is_substitution(std::string_view word) {
  return is_listed(word, "$(* <(* `*") && is_listed(word, "*) *`");
}

bool PythonPath::sets_variables(std::string_view command) {
  return is_listed(command, k_exports) || is_listed(command, k_changes);
}

void PythonPath::note_name_lists(const Commands& commands) {
  for (std::size_t i = 0; i < commands.size(); ++i)
    m_computed_names = m_computed_names || lists_names(commands, i);
}

void PythonPath::note_test(const Argv& words, char behind) {
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

std::vector<Assignment> PythonPath::take_assignments(Argv& words, int line) {
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
    if (!(exports && take(*word)) && takes_away && (by_word ? *word == k_path : is_python_path(*word)) &&
        !names_path(join({word + 1, words.end()}, " ")) && !(m_tested && is_listed(first, "set setenv")))
      note_loss(line, (exports ? "-n" : first) + " PYTHONPATH");
  return all;
}

void PythonPath::assign(std::string name, const std::string& value, int line) {
  const bool adds = name.ends_with('+');
  name.resize(name.size() - (adds ? 1 : 0));
  if (is_python_path(name) && !adds && !names_path(value) && !m_tested)
    note_loss(line, "PYTHONPATH=");
  else if (is_python_path(name) && holds_path(value)) // its old value was saved in a variable and is set again
    m_loss.reset();
  m_computed_names = m_computed_names || value == k_path;
  std::string& text = m_environment[name];
  text = (adds ? text : "") + value;
  text.resize(std::min(text.size(), k_most_value));
}

void PythonPath::end_subshell(bool forget) {
  if (m_subshells.empty())
    return;
  if (forget)
    m_loss = std::move(m_subshells.back());
  m_subshells.pop_back();
}

std::optional<Mention> PythonPath::take_loss() {
  if (m_loss)
    std::ranges::replace(m_subshells, m_loss, std::optional<Mention>());
  return std::exchange(m_loss, std::nullopt);
}

void PythonPath::note_loss(int line, const std::string& subject) {
  m_loss = Mention{line, "SF407", subject, "changes PYTHONPATH, so what it starts is not guarded"};
}

bool PythonPath::holds_path(std::string_view text) const {
  bool found = false;
  for (auto at = text.find('$'); at != std::string_view::npos && !found; at = text.find('$', at + 1)) {
    const auto known = m_environment.find(variable_at(text, at));
    found = known != m_environment.end() && known->first != k_path && has_path(known->second);
  }
  return found;
}

bool PythonPath::names_path(std::string_view text) const {
  return has_path(text) || holds_path(text);
}

bool PythonPath::is_python_path(const std::string& name) const {
  const bool prefix = name.starts_with("${!") && k_path.starts_with(name.substr(3, name.find_first_of("*@") - 3));
  return name == k_path || prefix || (m_computed_names && name.starts_with('$'));
}

std::string PythonPath::expand_start(std::string name) const {
  for (int times = 0; name.starts_with('$') && times < k_most_values; ++times) {
    const auto slash = std::min(name.find('/'), name.size());
    const bool plain = name.find_first_of("(%#:-") >= slash; // false for $(...) and ${A%/*}
    const std::string rest = name.substr(plain ? slash : name.find_last_of(")}") + 1);
    const auto known = m_environment.find(plain ? variable_at(name, 0) : "");
    name = known != m_environment.end() ? known->second + rest : rest.substr(std::min<std::size_t>(1, rest.size()));
  }
  return name.find_first_of("$`") == std::string::npos ? name : std::string();
}

std::vector<std::string> PythonPath::find_files(const std::string& name) const {
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

Argv PythonPath::expand(const Argv& words) const {
  Argv all = words, before;
  for (int times = 0; times < k_most_values && all != before && all.size() < k_most_words; ++times)
    all = expand_once(std::exchange(before, all));
  return all;
}

Argv PythonPath::expand_value(const std::string& value) const {
  return expand(words_of_value(value));
}

Argv PythonPath::expand_once(const Argv& words) const {
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
    else if (known != m_environment.end() && !known->second.empty() && known->second != word &&
             all.size() < k_most_words)
      std::ranges::move(words_of_value(known->second), std::back_inserter(all));
    else if (other && all.empty())
      all = split_words(word.substr(sign + 1, word.size() - sign - 2));
    else // env PYTHONPATH=$NEW
      all.push_back(holds_path(word) && has_path(word) && !word.ends_with(k_same) ? word + std::string(k_same) : word);
  }
  return all;
}

} // namespace sharefs::cachefix
