#include "config/source.hpp"

#include "base/text.hpp"
#include "base/visible.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::config {

namespace {

constexpr std::size_t k_context_width = 100; ///< most characters of a source line in a message

bool is_continuation(char c) {
  return (static_cast<unsigned char>(c) & 0xc0U) == 0x80;
}

/// Returns the offset of the character with this number, from 0; the end of the text if there are fewer.
std::size_t offset_of(std::string_view text, std::size_t number) {
  std::size_t at = 0;
  for (; at < text.size(); ++at)
    if (!is_continuation(text[at]) && number-- == 0)
      break;
  return at;
}

/// Returns up to k_context_width characters of the line around the column, and the column within them.
std::pair<std::string, std::size_t> excerpt(std::string_view line, std::size_t column) {
  const std::size_t skipped = column > k_context_width * 3 / 4 ? column - k_context_width / 2 : 0;
  line.remove_prefix(offset_of(line, skipped));
  const auto rest = line.substr(offset_of(line, k_context_width));
  line.remove_suffix(rest.size());
  std::string out = skipped > 0 ? "..." : "";
  while (!line.empty()) {
    const auto character = line.substr(0, offset_of(line, 1));
    out += character != "\t" && find_invisible(character) ? "?" : character;
    line.remove_prefix(character.size());
  }
  out += rest.empty() ? "" : "...";
  return {out, skipped > 0 ? column - skipped + 3 : column};
}

} // namespace

Source::Source(std::string_view text, std::string file) : m_text(text), m_file(std::move(file)) {
  if (m_text.starts_with("\xef\xbb\xbf"))
    m_text.remove_prefix(3);
  if (m_text.size() > k_max_bytes)
    return; // find_unreadable() reports it
  m_lines.push_back(0);
  for (std::size_t i = 0; i < m_text.size(); ++i) {
    if (m_text[i] == '\n')
      m_lines.push_back(i + 1);
    else if (is_continuation(m_text[i]))
      m_continuations.push_back(i);
  }
}

std::optional<Problem> Source::find_unreadable() const {
  if (m_text.size() > k_max_bytes)
    return Problem{{1, 1},
                   fmt::format("the file has {}; a configuration has at most {}", format_bytes(m_text.size()),
                               format_bytes(k_max_bytes)),
                   "is it really a configuration of sharefs?"};
  const std::string not_text = "a configuration is UTF-8 text; save it as such";
  if (const auto nul = m_text.find('\0'); nul != std::string_view::npos)
    return Problem{place_of(nul), "a NUL byte: the file is binary or UTF-16", not_text};
  if (const auto bad = valid_utf8(m_text); bad < m_text.size())
    return Problem{place_of(bad), fmt::format("byte 0x{:02x} is not UTF-8", static_cast<unsigned char>(m_text[bad])),
                   not_text};
  for (std::size_t i = 0; i < m_text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(m_text[i]);
    const bool line_end = byte == '\n' || (byte == '\r' && i + 1 < m_text.size() && m_text[i + 1] == '\n');
    if ((byte < 0x20 && byte != '\t' && !line_end) || byte == 0x7f)
      return Problem{place_of(i), fmt::format("control character 0x{:02x}", byte), "remove it"};
  }
  return std::nullopt;
}

Place Source::place(int line, int byte) const {
  const auto row = static_cast<std::size_t>(std::max(line, 0));
  if (row >= m_lines.size())
    return {line + 1, byte + 1};
  const auto begin = m_lines[row];
  const auto end = begin + static_cast<std::size_t>(std::max(byte, 0));
  const auto inside = std::ranges::lower_bound(m_continuations, end) - std::ranges::lower_bound(m_continuations, begin);
  return {line + 1, static_cast<int>(end - begin) - static_cast<int>(inside) + 1};
}

Place Source::place_of(std::size_t offset) const {
  const auto next = std::ranges::upper_bound(m_lines, offset);
  const auto row = next - m_lines.begin() - 1;
  return place(static_cast<int>(row), static_cast<int>(offset - m_lines[static_cast<std::size_t>(row)]));
}

std::string_view Source::line(int number) const {
  if (number < 1 || static_cast<std::size_t>(number) > m_lines.size())
    return {};
  const auto begin = m_lines[static_cast<std::size_t>(number) - 1];
  auto text = m_text.substr(begin, m_text.find('\n', begin) - begin);
  if (text.ends_with('\r'))
    text.remove_suffix(1);
  return text;
}

Error Source::error(const Problem& problem) const {
  Error error{ErrorCode::config,
              fmt::format("{}:{}:{}: {}", m_file, problem.place.line, problem.place.column, problem.message),
              problem.hint,
              {}};
  const auto source = line(problem.place.line);
  if (source.empty() || problem.place.column < 1)
    return error;
  const auto [text, column] = excerpt(source, static_cast<std::size_t>(problem.place.column) - 1);
  // Tabs stay tabs in both lines, so that the caret stands in the right place at every tab width.
  std::string caret;
  for (const char c : text.substr(0, offset_of(text, column)))
    if (!is_continuation(c))
      caret += c == '\t' ? '\t' : ' ';
  caret.append(column - caret.size(), ' ');
  const auto number = std::to_string(problem.place.line);
  error.context = fmt::format("  {} | {}\n  {} | {}^", number, text, std::string(number.size(), ' '), caret);
  return error;
}

std::string shown(std::string_view text) {
  return fit_width(visible(text.substr(0, 1000)), 60);
}

} // namespace sharefs::config
