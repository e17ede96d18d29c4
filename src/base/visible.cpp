#include "base/visible.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <utf8proc.h>

namespace sharefs {

namespace {

/// One character of a text: a code point, or one byte that is not valid UTF-8.
struct Character {
  std::string_view bytes;
  utf8proc_int32_t code = 0;
  bool valid = false;
};

/// Removes the first character of `text`, which is not empty, and returns it.
Character take_character(std::string_view& text) {
  Character first{text.substr(0, 1), text.front(), static_cast<unsigned char>(text.front()) < 0x80};
  if (!first.valid) {
    const auto length =
        utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                         static_cast<utf8proc_ssize_t>(std::min<std::size_t>(text.size(), 4)), &first.code);
    first.valid = length > 0;
    first.bytes = text.substr(0, first.valid ? static_cast<std::size_t>(length) : 1);
  }
  text.remove_prefix(first.bytes.size());
  return first;
}

/// Most text is plain ASCII, whose characters need no table. The loop has no early exit, so that the compiler can check
/// many bytes at a time.
bool is_printable_ascii(std::string_view text) {
  bool printable = true;
  for (const char byte : text)
    printable &= byte >= 0x20 && byte < 0x7f;
  return printable;
}

/// True for control characters, line separators, and characters that only format text: zero-width characters, changes
/// of direction, soft hyphens, tags.
bool is_invisible(const Character& character) {
  if (!character.valid || character.code < 0x80)
    return !character.valid || character.code < 0x20 || character.code == 0x7f;
  switch (utf8proc_category(character.code)) {
  case UTF8PROC_CATEGORY_CC:
  case UTF8PROC_CATEGORY_CF:
  case UTF8PROC_CATEGORY_ZL:
  case UTF8PROC_CATEGORY_ZP:
    return true;
  default:
    return false;
  }
}

std::string escape(std::string_view text, std::string_view keep) {
  if (is_printable_ascii(text))
    return std::string(text);
  std::string out;
  while (!text.empty()) {
    const auto character = take_character(text);
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

std::size_t columns_of(const Character& character) {
  if (!character.valid || is_invisible(character))
    return 1;
  return static_cast<std::size_t>(utf8proc_charwidth(character.code));
}

} // namespace

std::size_t valid_utf8(std::string_view bytes) {
  for (auto rest = bytes; !rest.empty();)
    if (const auto character = take_character(rest); !character.valid)
      return static_cast<std::size_t>(character.bytes.data() - bytes.data());
  return bytes.size();
}

bool is_utf8(std::string_view bytes) {
  return valid_utf8(bytes) == bytes.size();
}

std::string to_utf8(std::string_view bytes) {
  if (is_printable_ascii(bytes))
    return std::string(bytes);
  std::string out;
  out.reserve(bytes.size());
  while (!bytes.empty()) {
    const auto character = take_character(bytes);
    out += character.valid ? character.bytes : "\xef\xbf\xbd"; // U+FFFD
  }
  return out;
}

std::optional<std::size_t> find_invisible(std::string_view text) {
  if (is_printable_ascii(text))
    return std::nullopt;
  for (auto rest = text; !rest.empty();)
    if (const auto character = take_character(rest); is_invisible(character))
      return static_cast<std::size_t>(character.bytes.data() - text.data());
  return std::nullopt;
}

std::string visible(std::string_view text) {
  return escape(text, {});
}

std::string visible_lines(std::string_view text) {
  return escape(text, "\n\t");
}

std::string visible_json(std::string_view json) {
  std::string out;
  for (;;) {
    // Below U+007F only the space between values is left to be seen, and most text is that.
    const auto plain = std::ranges::find_if(json, [](char byte) { return static_cast<unsigned char>(byte) >= 0x7f; });
    out.append(json.begin(), plain);
    json.remove_prefix(static_cast<std::size_t>(plain - json.begin()));
    if (json.empty())
      return out;
    const auto character = take_character(json);
    const auto code = static_cast<std::uint32_t>(character.code);
    constexpr std::uint32_t k_first_pair = 0x10000;
    if (!is_invisible(character))
      out += character.bytes;
    else if (code < k_first_pair)
      out += fmt::format("\\u{:04x}", code);
    else // a pair of UTF-16 (RFC 8259, section 7)
      out += fmt::format("\\u{:04x}\\u{:04x}", 0xd7c0U + (code >> 10U), 0xdc00U + (code & 0x3ffU));
  }
}

std::size_t display_width(std::string_view text) {
  if (is_printable_ascii(text))
    return text.size();
  std::size_t width = 0;
  while (!text.empty())
    width += columns_of(take_character(text));
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
    const auto character = take_character(text);
    used += columns_of(character);
    if (used > width - k_more.size())
      break;
    out += character.bytes;
  }
  return out.append(k_more);
}

} // namespace sharefs
