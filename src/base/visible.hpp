#pragma once
// Text from outside (file names, a server's answers, configuration), made safe to print on a terminal and to read.
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace sharefs {

/// Returns the offset of the first character that a reader would not see, or would see wrongly: control characters,
/// bytes that are not UTF-8, zero-width characters, line separators, and characters that change the direction of text.
/// Returns nullopt if there is none.
std::optional<std::size_t> find_invisible(std::string_view text);

/// Returns the length of the longest prefix of `bytes` that is valid UTF-8.
std::size_t valid_utf8(std::string_view bytes);

/// Returns one line, with `\n`, `\t`, `\r`, and every other invisible byte as `\ooo`, as ls(1) and mountinfo do.
/// Backslashes stay.
std::string visible(std::string_view text);
/// As visible(), but line feeds and tabs stay: for diffs and excerpts.
std::string visible_lines(std::string_view text);

/// Returns the same JSON with its invisible characters as `\uXXXX`; nlohmann's dump() escapes only those below U+0020.
std::string visible_json(std::string_view json);

/// Returns the columns that a terminal needs for one line of visible text (wide characters count 2, combining ones 0).
std::size_t display_width(std::string_view text);
/// Cuts `text` to at most `width` columns; the result ends with `...` if anything is missing.
std::string fit_width(std::string_view text, std::size_t width);

} // namespace sharefs
