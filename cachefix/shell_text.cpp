#include "cachefix/shell_text.hpp"

#include "base/text.hpp"
#include "cachefix/table.hpp"

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

namespace sharefs::cachefix {
namespace {

constexpr int k_most_substitutions = 16; // nested ones
constexpr int k_most_shifts = 16;        // `<<` without a here-document
constexpr std::string_view k_directives[][2] = {{"#SBATCH ", "sbatch"}, {"#BSUB ", "bsub"}};

constexpr std::size_t k_most_in_group = 64; // commands of a group or a pipe whose output is read
constexpr std::string_view k_run_commands =
    "xargs parallel bsub qsub at batch bash sh zsh sbatch */bash */sh while read";

bool is_of_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

/// True if a file gets the output of this command, or a pipe with a program that runs its input or writes a file.
bool goes_on(const Commands& commands, std::size_t at) {
  bool runs = !commands[at].to.empty();
  const std::size_t end = std::min(commands.size(), at + k_most_in_group);
  for (; !runs && at + 1 < end && commands[at].behind == '|'; ++at) {
    const Command& next = commands[at + 1];
    runs = !next.to.empty() || any_listed(next.words, k_run_commands) ||
           (contains(next.words, "tee") && !next.words.back().ends_with(".log"));
  }
  return runs;
}

class Splitter {
 public:
  explicit Splitter(std::string_view text) : m_text(text) {}

  Commands split() {
    for (m_at = 0; m_at < m_text.size(); ++m_at)
      read_char(m_text[m_at]);
    end_command();
    return std::move(m_commands);
  }

 private:
  void read_char(char c) {
    const std::string_view rest = m_text.substr(m_at);
    if (c == '\\') {
      if (rest.size() > 1 && m_text[++m_at] != '\n')
        add(m_text[m_at]);
    } else if (c == '\'' || c == '"') {
      read_quoted(c);
    } else if (c == '#' && !m_word) {
      read_comment(rest.substr(0, rest.find('\n')));
    } else if (rest.starts_with("<<<")) {
      end_word();
      m_at += 2;
      m_next = &Command::input;
    } else if (rest.starts_with("<<") && m_shifts < k_most_shifts && read_here_document()) {
      return;
    } else if (c == '(' && m_word && m_word->ends_with('=')) { // NAME=( begins an array
      ++m_open;
      end_word();
      m_now.is_array = true;
    } else if (c == '`' || rest.starts_with("$(") || rest.starts_with("<(") || rest.starts_with(">(")) {
      read_substitution();
    } else if (rest.starts_with("&>")) { // stdout and stderr to a file
      ++m_at;
      read_redirection('>');
    } else if ((c == '\n' && !m_now.is_array) ||
               (m_braces == 0 && std::string_view(";&|()").find(c) != std::string_view::npos)) {
      m_open += c == '(' ? 1 : c == ')' ? -1 : 0;
      m_braces = 0;
      m_now.behind = rest.starts_with("||") ? 'o' : rest.starts_with("&&") ? 'a' : c;
      end_command();
    } else if (c == '<' || c == '>') {
      read_redirection(c);
    } else if (std::isspace(static_cast<unsigned char>(c)) != 0 && m_braces == 0) {
      end_word();
    } else {
      m_braces = rest.starts_with("${") ? m_braces + 1 : m_braces - (c == '}' && m_braces > 0 ? 1 : 0);
      add(c);
    }
    if (m_at == m_body) // the lines of a here-document follow
      m_at = m_behind_body;
  }

  /// Reads a redirection: `< FILE`, `3< FILE`, `>| FILE`, `2>&1`.
  void read_redirection(char sign) {
    const bool other = end_number() && sign == '>';
    const char next = m_at + 1 < m_text.size() ? m_text[m_at + 1] : ' ';
    m_next = other || next == '&' ? &Command::other : sign == '<' ? &Command::from : &Command::to;
    m_now.appends = m_now.appends || (sign == '>' && next == '>');
    m_at += next == '&' || next == '|' ? 1 : 0;
  }

  /// Ends the word in front of a redirection. A number there is a descriptor and no word. True if it is not 1.
  bool end_number() {
    const bool number = m_word && !m_word->empty() && m_word->find_first_not_of("0123456789") == std::string::npos;
    const bool other = number && *m_word != "1";
    if (number)
      m_word.reset();
    end_word();
    return other;
  }

  void read_quoted(char quote) {
    add(std::string_view());
    for (++m_at; m_at < m_text.size() && m_text[m_at] != quote; ++m_at) {
      if (quote == '"' && (m_text[m_at] == '`' || m_text.compare(m_at, 2, "$(") == 0)) {
        read_substitution();
        continue;
      }
      m_at += quote == '"' && m_text[m_at] == '\\' && m_at + 1 < m_text.size() ? 1 : 0;
      *m_word += m_text[m_at];
    }
  }

  /// Reads `$(...)`, `<(...)`, `>(...)` or backquotes as commands of their own. The word around them keeps the text.
  void read_substitution() {
    const std::size_t begin = m_at;
    if (m_substitutions == k_most_substitutions)
      return add(m_text[m_at]);
    ++m_substitutions;
    Command around = std::exchange(m_now, {});
    std::optional<std::string> word = std::exchange(m_word, std::nullopt);
    const int open = std::exchange(m_open, 0), braces = std::exchange(m_braces, 0);
    const auto next = std::exchange(m_next, nullptr);
    const std::string_view whole = m_text;
    const bool backquotes = whole[begin] == '`';
    if (backquotes) // the next backquote ends it, even in quotes and comments
      m_text = whole.substr(0, whole.find('`', begin + 1));
    m_commands.push_back({.behind = whole[begin] == '<' ? '<' : '$'});
    for (m_at += backquotes ? 1 : 2; m_at < m_text.size() && (backquotes || m_text[m_at] != ')' || m_open > 0); ++m_at)
      read_char(m_text[m_at]);
    m_at = std::min(m_at, m_text.size());
    m_text = whole;
    end_command();
    m_commands.push_back({.behind = '`'});
    --m_substitutions;
    m_open = open;
    m_braces = braces;
    m_next = next;
    m_now = std::move(around);
    m_word = std::move(word);
    add(whole.substr(begin, m_at + 1 - begin));
  }

  /// Reads the here-document of `<<WORD`: the lines below this one up to WORD. False if `<<` is a shift in arithmetic.
  bool read_here_document() {
    const auto begin = std::min(m_text.find_first_not_of("<- \t'\"\\", m_at), m_text.size());
    const auto end = std::min(m_text.find_first_of(" \t\n;&|)'\"<>", begin), m_text.size());
    const auto body = std::min(m_text.find('\n', end), m_text.size());
    for (auto line = body; line < m_text.size();) {
      const auto stop = std::min(m_text.find('\n', line + 1), m_text.size());
      if (end > begin && trim(m_text.substr(line, stop - line)) == m_text.substr(begin, end - begin)) {
        (void)end_number();
        m_now.input = m_text.substr(body, line - body);
        m_body = body;
        m_behind_body = stop;
        m_at = end - (m_text.find_first_of("'\"", begin) == end ? 0 : 1);
        return true;
      }
      line = stop;
    }
    ++m_shifts;
    return false;
  }

  void read_comment(std::string_view line) {
    for (const auto& [prefix, program] : k_directives)
      if (line.starts_with(prefix))
        for (const Command& options : Splitter(line.substr(prefix.size())).split()) {
          Command& directive = m_commands.emplace_back(Command{.line = line_of(m_at), .is_directive = true});
          directive.words = options.words;
          directive.words.insert(directive.words.begin(), std::string(program));
          directive.words.emplace_back("job.sh");
        }
    m_at += line.size() - 1;
  }

  [[nodiscard]] int line_of(std::size_t at) {
    m_line += static_cast<int>(std::count(m_text.begin() + static_cast<std::ptrdiff_t>(m_counted),
                                          m_text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
    m_counted = at;
    return m_line;
  }
  void add(std::string_view text) {
    if (!m_word && m_now.words.empty())
      m_now.line = line_of(m_at);
    if (!m_word)
      m_word.emplace();
    *m_word += text;
  }
  void add(char c) { add(std::string_view(&c, 1)); }
  void end_word() {
    if (m_word && m_next != nullptr)
      m_now.*std::exchange(m_next, nullptr) = *m_word;
    else if (m_word)
      m_now.words.push_back(*m_word);
    m_word.reset();
  }
  void end_command() {
    end_word();
    if (!m_now.words.empty() || m_now.behind == '(' || m_now.behind == ')' || !m_now.to.empty())
      m_commands.push_back(std::move(m_now));
    m_now = {};
  }

  std::string_view m_text;
  std::size_t m_at = 0;
  std::size_t m_body = std::string::npos, m_behind_body = 0; ///< begin and end of the lines of a here-document
  std::size_t m_counted = 0;
  int m_line = 1, m_shifts = 0;        ///< line of byte m_counted; number of `<<` without a here-document
  int m_braces = 0;                    ///< open braces of `${A:-b c}`
  int m_open = 0, m_substitutions = 0; ///< open parentheses in the innermost substitution; its depth
  std::optional<std::string> m_word;
  std::string Command::* m_next = nullptr; ///< member that gets the next word; nullptr: it is a word of the command
  Command m_now;
  Commands m_commands;
};

} // namespace

std::string written_by(const Argv& words) {
  std::string text = join({words.begin() + 1, words.end()}, " ");
  for (auto at = text.find("\\n"); at != std::string::npos; at = text.find("\\n", at))
    text.replace(at, 2, "\n");
  return text;
}

Commands commands_of(std::string_view text) {
  return Splitter(text).split();
}

bool is_substitution(std::string_view word) {
  return is_listed(word, "$(* <(* `*") && is_listed(word, "*) *`");
}

bool is_assignment(const std::string& word) {
  const auto name = word.substr(0, word.find_first_of("+=["));
  return name.size() < word.size() && assigns_variable(name + "=");
}

bool has_path(std::string_view text) {
  for (auto at = text.find(k_python_path); at != std::string_view::npos; at = text.find(k_python_path, at + 1)) {
    const auto end = at + k_python_path.size();
    if ((at == 0 || !is_of_name(text[at - 1])) && (end == text.size() || !is_of_name(text[end])))
      return true;
  }
  return false;
}

std::string variable_at(std::string_view text, std::size_t dollar) {
  const auto begin = std::min(text.find_first_not_of("{!\"", dollar + 1), text.size());
  auto end = begin;
  while (end < text.size() && is_of_name(text[end]))
    ++end;
  const std::string name(text.substr(begin, end == begin ? 1 : end - begin));
  return name == "*" || (name[0] >= '1' && name[0] <= '9') ? "@" : name;
}

bool lists_names(const Commands& commands, std::size_t at) {
  const Argv& words = commands[at].words;
  if (words.empty() || !(words[0] == "compgen" || words == Argv{"env"} || words == Argv{"printenv"}))
    return false;
  const bool filtered = commands[at].behind == '|' && at + 1 < commands.size();
  return std::ranges::none_of(filtered ? commands[at + 1].words : words, [](const std::string& word) {
    const auto begin = std::min(word.find_first_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ"), word.size());
    const auto end = std::min(word.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ", begin), word.size());
    return end - begin > 2 && !k_python_path.starts_with(word.substr(begin, end - begin));
  });
}

Argv words_of_value(const std::string& value) {
  const bool whole = is_substitution(value) || (value.starts_with("${") && value.find('}') == value.size() - 1);
  return whole ? Argv{value} : split_words(value);
}

std::string resolve_which(const std::string& word) {
  if (!is_listed(word, "$(which* `which* $(command*"))
    return word;
  const Argv parts = split_words(word);
  return parts.back().substr(0, parts.back().find_first_of(")`"));
}

bool is_output_run(const Commands& commands, std::size_t at) {
  bool runs = goes_on(commands, at);
  int open = 0; // groups that begin behind this command
  for (std::size_t i = at + 1; !runs && i < std::min(commands.size(), at + k_most_in_group); ++i) {
    const std::string first = commands[i].words.empty() ? "" : commands[i].words[0];
    const bool ends = is_listed(first, "} done");
    runs = ends && open == 0 && goes_on(commands, i);
    open += ends ? (open > 0 ? -1 : 0) : is_listed(first, "{ for while until select") ? 1 : 0;
  }
  return runs;
}

} // namespace sharefs::cachefix
