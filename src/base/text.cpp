#include "base/text.hpp"

#include <fmt/format.h>

namespace sharefs {

std::string lower_case(std::string_view text) {
  std::string result(text);
  for (auto& byte : result)
    byte = byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte - 'A' + 'a') : byte;
  return result;
}

std::string with_line_end(std::string text) {
  if (!text.empty() && text.back() != '\n')
    text += '\n';
  return text;
}

bool is_control(char byte) {
  return static_cast<unsigned char>(byte) < 0x20 || byte == 0x7F;
}

bool is_octal_digit(char byte) {
  return byte >= '0' && byte <= '7';
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view k_space = " \t\r\n";
  const auto first = text.find_first_not_of(k_space);
  if (first == std::string_view::npos)
    return {};
  return text.substr(first, text.find_last_not_of(k_space) - first + 1);
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (auto end = text.find(separator); end != std::string_view::npos; end = text.find(separator, begin)) {
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  parts.emplace_back(text.substr(begin));
  return parts;
}

std::vector<std::string> split_words(std::string_view text) {
  constexpr std::string_view k_blanks = " \t";
  std::vector<std::string> words;
  for (auto begin = text.find_first_not_of(k_blanks); begin != std::string_view::npos;) {
    const auto end = std::min(text.find_first_of(k_blanks, begin), text.size());
    words.emplace_back(text.substr(begin, end - begin));
    begin = text.find_first_not_of(k_blanks, end);
  }
  return words;
}

std::vector<std::string> split_lines(std::string_view text) {
  if (text.empty())
    return {};
  if (text.back() == '\n')
    text.remove_suffix(1);
  auto lines = split(text, '\n');
  for (auto& line : lines)
    if (line.ends_with('\r'))
      line.pop_back();
  return lines;
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  return fmt::format("{}", fmt::join(parts, separator));
}

std::string decode_octal(std::string_view text) {
  if (text.find('\\') == std::string_view::npos) // almost no path has escapes, and a mount table is long
    return std::string(text);
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escape = text[i] == '\\' && i + 3 < text.size() && text[i + 1] >= '0' && text[i + 1] <= '3' &&
                        is_octal_digit(text[i + 2]) && is_octal_digit(text[i + 3]);
    if (!escape) {
      out += text[i];
      continue;
    }
    const int value = (text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0');
    out += static_cast<char>(value);
    i += 3;
  }
  return out;
}

std::optional<std::string>
expand_variables(std::string_view text,
                 const std::function<std::optional<std::string>(std::string_view, std::size_t)>& value_of) {
  const auto is_of_name = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto dollar = std::min(text.find('$', i), text.size());
    out += text.substr(i, dollar - i);
    i = dollar;
    if (i == text.size())
      break;
    const bool braces = text.substr(i + 1).starts_with('{');
    const std::size_t begin = i + (braces ? 2 : 1);
    std::size_t end = begin;
    while (end < text.size() && is_of_name(text[end]))
      ++end;
    const std::string_view name = text.substr(begin, end - begin);
    if (name.empty() || (name[0] >= '0' && name[0] <= '9') || (braces && (end == text.size() || text[end] != '}')))
      return std::nullopt;
    const auto value = value_of(name, i);
    if (!value)
      return std::nullopt;
    out += *value;
    i = braces ? end : end - 1;
  }
  return out;
}

namespace {
constexpr std::string_view k_base64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
}

std::string base64(std::string_view bytes) {
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k)
      group = group << 8U | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    for (std::size_t k = 0; k < 4; ++k)
      out += i + k <= bytes.size() ? k_base64[group >> (18 - 6 * k) & 63U] : '=';
  }
  return out;
}

std::optional<std::string> decode_base64(std::string_view text) {
  while (!text.empty() && text.back() == '=')
    text.remove_suffix(1);
  if (text.size() % 4 == 1)
    return std::nullopt;
  std::string bytes;
  std::uint32_t group = 0;
  unsigned bits = 0;
  for (const char c : text) {
    const auto digit = k_base64.find(c);
    if (digit == std::string_view::npos)
      return std::nullopt;
    group = (group << 6U | static_cast<std::uint32_t>(digit)) & 0xffffffU;
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      bytes += static_cast<char>(group >> bits & 0xffU);
    }
  }
  return bytes;
}

bool contains(const std::vector<std::string>& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

std::string count_of(std::size_t count, std::string_view noun) {
  return count == 1 ? fmt::format("1 {}", noun) : fmt::format("{} {}s", count, noun);
}

} // namespace sharefs
