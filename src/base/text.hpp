#pragma once
// Small pure functions on text that more than one room needs.
#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sharefs {

std::string_view trim(std::string_view text); ///< without spaces, tabs, CR and LF at both ends
/// Split at every `separator`; "a,,b" gives three parts, "" gives one empty part.
std::vector<std::string> split(std::string_view text, char separator);
/// The non-empty words between runs of spaces and tabs.
std::vector<std::string> split_words(std::string_view text);
/// Lines without their line ends; a final newline does not add an empty line.
std::vector<std::string> split_lines(std::string_view text);
std::string join(const std::vector<std::string>& parts, std::string_view separator);

/// As strcasecmp(3) compares in the C locale: only A to Z change.
std::string lower_case(std::string_view text);
/// With a line end at its end, unless it is empty.
std::string with_line_end(std::string text);

bool is_control(char byte); ///< of ASCII: a terminal would obey it
bool is_octal_digit(char byte);
/// `\040` style escapes of /proc/self/mountinfo, fstab(5) and exports(5) -> bytes. A backslash that is not followed by
/// three octal digits (value <= 0377) stays as it is.
std::string decode_octal(std::string_view text);

/// `$NAME` and `${NAME}` anywhere in `text` replaced by `value_of(NAME, position in text)`. nullopt for a `$` in front
/// of anything else, and where `value_of` gives none.
std::optional<std::string> expand_variables(
    std::string_view text,
    const std::function<std::optional<std::string>(std::string_view name, std::size_t position)>& value_of);

/// Levenshtein distance with transposition of neighbours as one edit (Damerau), at most `limit` (then limit + 1).
std::size_t edit_distance(std::string_view a, std::string_view b, std::size_t limit = 8);
/// The candidate nearest to `word`, if it is near enough to be a typing mistake (at most a third of the length, max 3).
std::optional<std::string> did_you_mean(std::string_view word, const std::vector<std::string>& candidates);
/// "did you mean `X`?" or `otherwise` - the usual content of a hint.
std::string did_you_mean_hint(std::string_view word, const std::vector<std::string>& candidates,
                              const std::string& otherwise = {});

/// `text` with every byte that is not valid UTF-8 replaced by U+FFFD; for JSON and terminals.
std::string to_utf8(std::string_view bytes);
bool is_utf8(std::string_view bytes);
std::string base64(std::string_view bytes);

/// 0 -> "0 B", 1536 -> "1.5 KiB", in powers of 1024 with one decimal below 10.
std::string format_bytes(std::uint64_t bytes);
/// Microseconds -> "87 us", "1.2 ms", "3.4 s", "2 min 5 s".
std::string format_duration(std::int64_t microseconds);
/// "10", "10s", "500ms", "2min", "1h", "30d" -> milliseconds (a bare number is seconds, fractions allowed); nullopt
/// otherwise.
std::optional<std::int64_t> parse_duration(std::string_view text);
/// "4096", "64K", "10G", "1.5TiB" (powers of 1024) -> bytes; nullopt otherwise.
std::optional<std::uint64_t> parse_size(std::string_view text);
/// "2775", "0755" (octal, at most 07777) -> mode bits; nullopt otherwise.
std::optional<unsigned> parse_mode(std::string_view text);
std::string format_mode(unsigned mode); ///< 04755 -> "4755", 0644 -> "0644"

/// The name of an enumerator by its number. The last name stands for all numbers beyond, which the bytes of another
/// process may hold.
template <class Enum, std::size_t N> const char* name_in(const std::array<const char*, N>& names, Enum value) {
  return names[std::min(static_cast<std::size_t>(value), N - 1)];
}

/// One of the words is this one.
bool contains(const std::vector<std::string>& words, std::string_view word);

/// "1 file", "3 files": the noun in the plural for every count but 1.
std::string count_of(std::size_t count, std::string_view noun);

} // namespace sharefs
