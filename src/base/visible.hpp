#pragma once
// Text from outside (file names, a server's answers, configuration) made safe for a terminal and for a reader's eye.
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace sharefs {

/// Offset of the first byte of something a reader would not see, or see wrongly: control characters, bytes that are not
/// UTF-8, zero-width characters, line separators, and those that change the direction of text; nullopt if all is plain.
std::optional<std::size_t> find_invisible(std::string_view text);

/// Length of the longest front of `bytes` that is UTF-8.
std::size_t valid_utf8(std::string_view bytes);

/// One line: `\n`, `\t`, `\r`, and every other invisible byte as `\ooo`, as ls(1) and mountinfo do. Backslashes stay.
std::string visible(std::string_view text);
/// As visible(), but line feeds and tabs stay: for diffs and excerpts.
std::string visible_lines(std::string_view text);

/// Columns that a terminal needs for one line of visible text (wide characters count 2, combining ones 0).
std::size_t display_width(std::string_view text);
/// `text` cut to at most `width` columns, with `...` at the end if anything is missing.
std::string fit_width(std::string_view text, std::size_t width);

} // namespace sharefs
