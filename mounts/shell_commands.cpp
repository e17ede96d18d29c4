#include "mounts/shell_commands.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <utility>

namespace sharefs::mounts {

namespace {

constexpr std::string_view k_blanks = " \t", k_separators = ";&|()", k_quotes = "\"'";

class ShellReader {
 public:
  explicit ShellReader(std::string_view script) : m_text(script) {}

  std::vector<ShellCommand> read() {
    for (; m_at < m_text.size(); ++m_at) {
      const char c = m_text[m_at];
      if (c == '\\' && m_quote != '\'' && m_at + 1 < m_text.size())
        read_escaped();
      else if (m_quote != 0 ? c == m_quote : k_quotes.find(c) != std::string_view::npos)
        toggle_quote(c);
      else if (m_quote != 0)
        add(c);
      else if (c == '#' && !m_in_word)
        m_at = std::min(m_text.find('\n', m_at), m_text.size()) - 1;
      else if (k_blanks.find(c) != std::string_view::npos)
        end_word();
      else if (c == '\n')
        end_line();
      else if (k_separators.find(c) != std::string_view::npos && !(c == '&' && is_behind_redirection()))
        separate(c);
      else if (m_text.substr(m_at).starts_with("<<"))
        begin_here_document();
      else
        add(c);
    }
    end_command();
    return std::move(m_commands);
  }

 private:
  [[nodiscard]] bool is_behind_redirection() const { return m_word.ends_with('>') || m_word.ends_with('<'); }

  void begin_word() {
    if (!std::exchange(m_in_word, true) && m_now.words.empty()) {
      m_now.line = m_line;
      m_now.always = !m_conditional && m_parentheses == 0;
    }
  }

  void add(char c) {
    begin_word();
    m_line += c == '\n' ? 1 : 0;
    m_word += c;
  }

  void read_escaped() {
    if (const char next = m_text[++m_at]; next == '\n')
      ++m_line; // the line goes on
    else
      add(next);
  }

  void toggle_quote(char c) {
    m_quote = m_quote == 0 ? c : '\0';
    begin_word();
  }

  void end_word() {
    if (std::exchange(m_in_word, false))
      m_now.words.push_back(std::exchange(m_word, {}));
  }

  void end_command() {
    end_word();
    if (!m_now.words.empty())
      m_commands.push_back(std::exchange(m_now, {}));
  }

  void end_line() {
    end_word();
    if (!m_now.words.empty())
      m_conditional = false; // the line behind `&&` is still a part of that list
    end_command();
    ++m_line;
    skip_here_document();
  }

  void separate(char c) {
    end_command();
    m_conditional = c == '|' || m_text.substr(m_at).starts_with("&&");
    if (m_text.substr(m_at).starts_with("&&") || m_text.substr(m_at).starts_with("||"))
      ++m_at;
    if (c == '(')
      ++m_parentheses;
    else if (c == ')' && m_parentheses > 0) // that of a pattern in `case` has none before it
      --m_parentheses;
  }

  void begin_here_document() {
    m_at += 2;
    if (m_text.substr(m_at).starts_with('<'))
      return; // `<<<`: its text is the next word
    const auto end = m_text.find_first_of("\n \t;&|()<>", m_text.find_first_not_of("- \t", m_at));
    m_end_of_document.clear();
    for (const char c : m_text.substr(m_at, end - m_at))
      if (std::string_view("- \t\\\"'").find(c) == std::string_view::npos)
        m_end_of_document += c;
    m_at = std::min(end, m_text.size()) - 1;
  }

  /// Goes to the last line of the here-document that begins here. One without an end was no here-document, but a shift.
  void skip_here_document() {
    const auto name = std::exchange(m_end_of_document, {});
    std::size_t begin = m_at + 1, lines = 0;
    while (!name.empty() && begin < m_text.size()) {
      const auto end = std::min(m_text.find('\n', begin), m_text.size());
      ++lines;
      if (trim(m_text.substr(begin, end - begin)) == name) {
        m_at = end;
        m_line += lines;
        return;
      }
      begin = end + 1;
    }
  }

  std::string_view m_text;
  std::size_t m_at = 0, m_line = 1, m_parentheses = 0;
  std::string m_word, m_end_of_document;
  bool m_in_word = false, m_conditional = false;
  char m_quote = 0;
  ShellCommand m_now;
  std::vector<ShellCommand> m_commands;
};

/// True for `exit`, and for an `exec` that does more than to redirect the output of the script.
bool ends_script(const std::vector<std::string>& words) {
  return words[0] == "exit" ||
         (words[0] == "exec" && words.size() > 1 && words[1].find_first_of("<>") == std::string::npos);
}

} // namespace

std::vector<ShellCommand> shell_commands(std::string_view script) {
  return ShellReader(script).read();
}

std::size_t ending_line(std::string_view script) {
  static const std::vector<std::string> k_opening{"if", "case", "for", "while", "until", "select", "{"};
  static const std::vector<std::string> k_closing{"fi", "esac", "done", "}"};
  static const std::vector<std::string> k_between{"then", "do", "else", "elif", "!"};
  std::size_t depth = 0;
  for (const auto& [line, words, always] : shell_commands(script)) {
    if (depth == 0 && always && ends_script(words))
      return line;
    for (const auto& word : words) {
      if (contains(k_opening, word))
        ++depth;
      else if (contains(k_closing, word))
        depth -= depth > 0 ? 1 : 0;
      else if (!contains(k_between, word))
        break; // only at the begin of a command these words are the shell's
    }
  }
  return 0;
}

} // namespace sharefs::mounts
