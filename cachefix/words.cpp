#include "cachefix/words.hpp"

#include "base/text.hpp"
#include "cachefix/table.hpp"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <optional>
#include <utility>

namespace sharefs::cachefix {
namespace {

constexpr int k_deepest_substitution = 16;
constexpr int k_most_endless = 16; // substitutions and here-documents without an end: more would take too long

class Splitter {
 public:
  Splitter(std::string_view text, int line, int depth) : m_text(text), m_line(line), m_depth(depth) {}

  WordLists split() {
    for (; m_at < m_text.size(); ++m_at)
      read_char(m_text[m_at]);
    end_list(false);
    return std::move(m_lists);
  }

 private:
  void read_char(char c) {
    const std::string_view two = m_text.substr(m_at, 2);
    const bool array = c == '(' && m_word && m_word->ends_with('=');
    if (c == '\\') {
      if (two.size() > 1 && m_text[++m_at] != '\n')
        add(m_text.substr(m_at, 1));
    } else if (c == '"' || c == '\'') {
      read_quoted(c);
    } else if (c == '#' && !m_word && !is_directive()) {
      m_at = std::min(m_text.find('\n', m_at), m_text.size()) - 1;
    } else if ((array || is_listed(two, "$( <( >( `*")) && read_inner()) {
      return;
    } else if (c == '<' || c == '>' || two == "&>") {
      read_redirection();
    } else if (c == '\n' || (m_braces == 0 && std::string_view(";&|()").find(c) != std::string_view::npos)) {
      end_list(c == '|' && two != "||");
      m_at = c == '\n' ? std::max(m_at, std::exchange(m_behind_body, 0)) : m_at + (two == "||" ? 1 : 0);
    } else if (std::isspace(static_cast<unsigned char>(c)) != 0 && m_braces == 0) {
      end_word();
    } else {
      m_braces += two == "${" ? 1 : c == '}' && m_braces > 0 ? -1 : 0;
      add(two.substr(0, 1));
    }
  }

  void read_quoted(char quote) {
    const bool escapes = quote == '"' || (m_word && m_word->ends_with('$')); // in $'...', too
    add({});
    for (++m_at; m_at < m_text.size() && m_text[m_at] != quote; ++m_at) {
      if (quote == '"' && is_listed(m_text.substr(m_at, 2), "$( `*") && read_inner())
        continue;
      m_at += escapes && m_text[m_at] == '\\' && m_at + 1 < m_text.size() ? 1 : 0;
      add(m_text.substr(m_at, 1));
    }
  }

  /// True if a `#!` line, or a directive of a batch system, begins at m_at.
  [[nodiscard]] bool is_directive() {
    return is_listed(m_text.substr(m_at, m_text.find(' ', m_at) - m_at), "#SBATCH #BSUB") ||
           (m_text.compare(m_at, 2, "#!") == 0 && line_of(m_at) <= 2);
  }

  /// Returns the end of the `$(...)` or `(...)` at m_at; npos if it has none. Backquotes end in quotes and comments,
  /// too.
  [[nodiscard]] std::size_t find_end() const {
    if (m_text[m_at] == '`')
      return m_text.find('`', m_at + 1);
    char quote = 0;
    int open = 0;
    for (std::size_t at = m_at; at < m_text.size(); ++at) {
      const char c = m_text[at];
      if (c == '\\')
        ++at;
      else if (quote == 0 ? c == '"' || c == '\'' : c == quote)
        quote = quote == 0 ? c : '\0';
      else if (quote == 0)
        open += c == '(' ? 1 : c == ')' ? -1 : 0;
      if (c == ')' && open == 0 && quote == 0)
        return at;
    }
    return std::string::npos;
  }

  /// Reads `$(...)`, `<(...)`, `>(...)` or backquotes as commands of their own; the word around them keeps the text.
  /// The parentheses of an array are only a part of its word. False if there is no end.
  bool read_inner() {
    const auto end = m_endless < k_most_endless && m_depth < k_deepest_substitution ? find_end() : std::string::npos;
    if (end == std::string::npos) {
      ++m_endless;
      return false;
    }
    const auto begin = m_at + (m_text[m_at] == '`' ? 1 : 2);
    if (m_text[m_at] != '(') {
      WordLists inner = Splitter(m_text.substr(begin, end - begin), line_of(m_at), m_depth + 1).split();
      std::ranges::move(inner, std::back_inserter(m_lists));
    }
    add(m_text.substr(m_at, end + 1 - m_at));
    m_at = end;
    return true;
  }

  /// Reads `> FILE`, `2>&1`, `< FILE` and the like; a number in front is a descriptor and no word. The file of `<`, the
  /// text of a here-string and that of a here-document are words.
  void read_redirection() {
    if (m_word && !m_word->empty() && m_word->find_first_not_of("0123456789") == std::string::npos)
      m_word.reset();
    end_word();
    if (m_text.compare(m_at, 2, "<<") == 0 && m_text.compare(m_at, 3, "<<<") != 0 && read_here_document())
      return;
    m_is_output = m_text[m_at] != '<';
    m_at = std::min(m_text.find_first_not_of("<>&|", m_at), m_text.size()) - 1;
  }

  /// Reads the here-document of `<<WORD`: the lines below this one up to WORD. False if `<<` is a shift in arithmetic.
  bool read_here_document() {
    const auto begin = std::min(m_text.find_first_not_of("<- \t'\"\\", m_at), m_text.size());
    const auto end = std::min(m_text.find_first_of(" \t\n;&|)'\"<>", begin), m_text.size());
    const auto body = std::min(m_text.find('\n', end), m_text.size());
    for (auto line = body; m_endless < k_most_endless && end > begin && line < m_text.size();) {
      const auto stop = std::min(m_text.find('\n', line + 1), m_text.size());
      if (trim(m_text.substr(line, stop - line)) == m_text.substr(begin, end - begin)) {
        add(m_text.substr(body, line - body));
        end_word();
        m_behind_body = stop;
        m_at = end - (m_text.find_first_of("'\"", begin) == end ? 0 : 1);
        return true;
      }
      line = stop;
    }
    ++m_endless;
    return false;
  }

  [[nodiscard]] int line_of(std::size_t at) {
    m_line += static_cast<int>(std::ranges::count(m_text.substr(m_counted, at - m_counted), '\n'));
    m_counted = at;
    return m_line;
  }
  void add(std::string_view text) {
    if (!m_word && m_now.words.empty())
      m_now.line = line_of(m_at);
    if (!m_word)
      m_word.emplace();
    m_word->append(text);
  }
  void end_word() {
    if (m_word && !m_is_output)
      m_now.words.push_back(*m_word);
    else if (m_word && m_word->find_first_not_of("0123456789-") != std::string::npos) // `>&2` names no file
      m_now.to = *m_word;
    m_is_output = m_is_output && !m_word;
    m_word.reset();
  }
  void end_list(bool is_piped) {
    end_word();
    m_braces = 0;
    if (m_now.to.empty() && (is_piped || (m_depth > 0 && !m_now.words.empty())))
      m_now.to = "|";
    if (!m_now.words.empty() || !m_now.to.empty())
      m_lists.push_back(std::move(m_now));
    m_now = {};
  }

  std::string_view m_text;
  std::size_t m_at = 0, m_counted = 0;
  std::size_t m_behind_body = 0; ///< end of the here-document that begins at the next line; 0: there is none
  int m_line, m_depth;           ///< line of byte m_counted; substitutions around the text
  int m_endless = 0;             ///< substitutions and here-documents without an end
  int m_braces = 0;              ///< open braces of `${A:-b c}`
  bool m_is_output = false;      ///< the next word is the file of `>`
  std::optional<std::string> m_word;
  WordList m_now;
  WordLists m_lists;
};

} // namespace

WordLists split_into_lists(std::string_view text) {
  return Splitter(text, 1, 0).split();
}

} // namespace sharefs::cachefix
