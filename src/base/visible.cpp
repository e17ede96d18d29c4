#include "base/visible.hpp"

#include "base/text.hpp"

#include <array>
#include <clocale>
#include <cwchar>
#include <fmt/format.h>

namespace sharefs {

namespace {

/// The first character of `text` (one byte if it is not UTF-8); `text` is not empty.
struct Character {
  std::string_view bytes;
  char32_t code = 0;
  bool valid = false;
};

Character first_character(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  if (lead < 0x80)
    return {text.substr(0, 1), lead, true};
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  const auto bytes = text.substr(0, length);
  if (bytes.size() < length || !is_utf8(bytes))
    return {text.substr(0, 1), 0, false};
  char32_t code = lead & (0xffU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i)
    code = code << 6U | (static_cast<unsigned char>(bytes[i]) & 0x3fU);
  return {bytes, code, true};
}

bool is_invisible(const Character& character) {
  struct Range {
    char32_t first, last;
  };
  // Controls; zero width and direction marks; line separators, embeddings and overrides; isolates; byte order mark.
  constexpr std::array<Range, 6> k_ranges{
      {{0, 0x1f}, {0x7f, 0x9f}, {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069}, {0xfeff, 0xfeff}}};
  if (!character.valid)
    return true;
  for (const auto& [first, last] : k_ranges)
    if (character.code >= first && character.code <= last)
      return true;
  return false;
}

std::string escape(std::string_view text, std::string_view keep) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto character = first_character(text);
    text.remove_prefix(character.bytes.size());
    if (!is_invisible(character) || keep.find(character.bytes) != std::string_view::npos)
      out += character.bytes;
    else if (character.bytes == "\n")
      out += "\\n";
    else if (character.bytes == "\t")
      out += "\\t";
    else if (character.bytes == "\r")
      out += "\\r";
    else
      for (const char byte : character.bytes)
        out += fmt::format("\\{:03o}", static_cast<unsigned char>(byte));
  }
  return out;
}

/// wcwidth(3) of the C.UTF-8 locale, which glibc has built in; the process itself stays in the "C" locale.
std::size_t columns_of(const Character& character) {
  static const locale_t k_locale = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  if (character.code < 0x80 || !character.valid || k_locale == nullptr)
    return 1;
  const locale_t before = ::uselocale(k_locale);
  const int width = ::wcwidth(static_cast<wchar_t>(character.code));
  ::uselocale(before);
  return width < 0 ? 1 : static_cast<std::size_t>(width);
}

} // namespace

std::optional<std::size_t> find_invisible(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const auto character = first_character(text.substr(at));
    if (is_invisible(character))
      return at;
    at += character.bytes.size();
  }
  return std::nullopt;
}

std::string visible(std::string_view text) {
  return escape(text, {});
}

std::string visible_lines(std::string_view text) {
  return escape(text, "\n\t");
}

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    const auto character = first_character(text);
    width += columns_of(character);
    text.remove_prefix(character.bytes.size());
  }
  return width;
}

std::string fit_width(std::string_view text, std::size_t width) {
  if (display_width(text) <= width)
    return std::string(text);
  constexpr std::string_view k_more = "...";
  if (width <= k_more.size())
    return std::string(k_more.substr(0, width));
  std::string out;
  std::size_t used = 0;
  while (!text.empty()) {
    const auto character = first_character(text);
    used += columns_of(character);
    if (used > width - k_more.size())
      break;
    out += character.bytes;
    text.remove_prefix(character.bytes.size());
  }
  return out.append(k_more);
}

} // namespace sharefs
