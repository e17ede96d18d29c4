#include "base/visible.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utf8proc.h>

namespace sharefs {

namespace {

/// The first character of `text` (one byte if it is not UTF-8); `text` is not empty.
struct Character {
  std::string_view bytes;
  utf8proc_int32_t code = 0;
  bool valid = false;
};

Character first_character(std::string_view text) {
  if (static_cast<unsigned char>(text.front()) < 0x80)
    return {text.substr(0, 1), text.front(), true};
  utf8proc_int32_t code = 0;
  const auto length = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                       static_cast<utf8proc_ssize_t>(std::min<std::size_t>(text.size(), 4)), &code);
  return length > 0 ? Character{text.substr(0, static_cast<std::size_t>(length)), code, true}
                    : Character{text.substr(0, 1), 0, false};
}

/// Controls, line separators, and what only formats text: zero widths, directions, soft hyphens, tags.
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

std::size_t columns_of(const Character& character) {
  if (!character.valid || is_invisible(character))
    return 1;
  return static_cast<std::size_t>(utf8proc_charwidth(character.code));
}

} // namespace

std::size_t valid_utf8(std::string_view bytes) {
  auto rest = bytes;
  while (!rest.empty()) {
    const auto character = first_character(rest);
    if (!character.valid)
      break;
    rest.remove_prefix(character.bytes.size());
  }
  return bytes.size() - rest.size();
}

bool is_utf8(std::string_view bytes) {
  return valid_utf8(bytes) == bytes.size();
}

std::string to_utf8(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  while (!bytes.empty()) {
    const auto character = first_character(bytes);
    out += character.valid ? character.bytes : "\xef\xbf\xbd"; // U+FFFD
    bytes.remove_prefix(character.bytes.size());
  }
  return out;
}

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
