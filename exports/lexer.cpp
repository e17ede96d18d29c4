#include "exports/lexer.hpp"

#include "base/text.hpp"

#include <algorithm>

namespace sharefs::exports {

namespace {

bool is_space(int byte) { // isspace(3) in the C locale, which exportfs runs in
  return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

/// Replaces an escape `\ooo` (at most 0377) at the end of `text` by its byte. exportfs decodes the collected text, not
/// the source, so a decoded backslash can begin another escape.
void decode_tail(std::string& text) {
  if (text.size() < 4)
    return;
  const char* tail = text.data() + text.size() - 4;
  if (tail[0] != '\\' || tail[1] > '3' || !is_octal_digit(tail[1]) || !is_octal_digit(tail[2]) ||
      !is_octal_digit(tail[3]))
    return;
  const int value = ((tail[1] - '0') << 6) | ((tail[2] - '0') << 3) | (tail[3] - '0');
  text.resize(text.size() - 3);
  text.back() = static_cast<char>(value);
}

} // namespace

int Lexer::read_byte() {
  if (at_end())
    return -1;
  const char byte = m_source[m_at++];
  if (byte != '\\' || at_end() || m_source[m_at] != '\n')
    return static_cast<unsigned char>(byte);
  ++m_at;
  while (!at_end() && (m_source[m_at] == ' ' || m_source[m_at] == '\t'))
    ++m_at;
  return ' ';
}

void Lexer::skip(std::string_view set) {
  while (!at_end()) {
    const auto before = m_at;
    const int byte = read_byte();
    if (byte == '#') { // a comment begins only where a word could begin: `host(rw)#x` is one word
      m_at = std::min(m_source.find('\n', m_at), m_source.size());
      continue;
    }
    if (byte != 0 && set.find(static_cast<char>(byte)) == std::string_view::npos) {
      m_at = before;
      return;
    }
  }
}

void Lexer::skip_rest_of_line() {
  while (!at_end()) {
    const int byte = read_byte();
    if (byte == '\n') {
      --m_at;
      return;
    }
  }
}

Lexer::Got Lexer::next(std::size_t limit, Word& word) {
  return read(limit, word, nullptr);
}

std::vector<std::size_t> Lexer::offsets_of(const Word& word) const {
  std::vector<std::size_t> offsets;
  Lexer again(m_source);
  again.m_at = word.begin;
  Word same;
  again.read(m_source.size() + 1, same, &offsets);
  offsets.resize(word.text.size());
  return offsets;
}

Lexer::Got Lexer::read(std::size_t limit, Word& word, std::vector<std::size_t>* offsets) {
  word = Word{};
  word.begin = m_at;
  auto& text = word.text;
  bool quoted = false;
  int byte = -1;
  while (text.size() < limit) {
    const auto offset = m_at;
    byte = read_byte();
    if (byte < 0 || (!quoted && (is_space(byte) || byte == 0))) // exportfs separates words at blanks and NUL bytes
      break;
    if (byte == '"') {
      quoted = !quoted;
      continue;
    }
    text.push_back(static_cast<char>(byte));
    decode_tail(text);
    if (offsets != nullptr) {
      offsets->push_back(offset);
      offsets->resize(text.size());
    }
  }
  if (byte == '\n')
    --m_at;
  word.open_quote = quoted && byte < 0;
  word.nul_behind = !quoted && byte == 0;
  if (text.size() >= limit)
    return Got::too_long;
  if (text.empty())
    return Got::nothing;
  if (const auto nul = text.find('\0'); nul != std::string::npos) {
    word.nul = true;
    text.resize(nul);
  }
  return Got::word;
}

LineIndex::LineIndex(std::string_view source, std::string file) : m_starts{0}, m_file(std::move(file)) {
  for (std::size_t at = source.find('\n'); at != std::string_view::npos; at = source.find('\n', at + 1))
    m_starts.push_back(at + 1);
}

Origin LineIndex::at(std::size_t offset) const {
  const auto next = std::upper_bound(m_starts.begin(), m_starts.end(), offset);
  return {m_file, static_cast<int>(next - m_starts.begin()), static_cast<int>(offset - *(next - 1)) + 1};
}

} // namespace sharefs::exports
