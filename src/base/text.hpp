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
/// Splits at every `separator`; "a,,b" gives three parts, "" gives one empty part.
std::vector<std::string> split(std::string_view text, char separator);
/// Returns the non-empty words between runs of spaces and tabs.
std::vector<std::string> split_words(std::string_view text);
/// Returns the lines without their line ends; a final newline does not add an empty line.
std::vector<std::string> split_lines(std::string_view text);
std::string join(const std::vector<std::string>& parts, std::string_view separator);

/// Changes only A to Z, as strcasecmp(3) compares in the C locale.
std::string lower_case(std::string_view text);
/// Returns `text` with a line end at its end; an empty text stays empty.
std::string with_line_end(std::string text);

bool is_control(char byte); ///< ASCII control characters, which a terminal interprets
bool is_octal_digit(char byte);
/// Decodes the escapes (such as `\040`) of /proc/self/mountinfo, fstab(5) and exports(5). A backslash that is not
/// followed by three octal digits (value <= 0377) stays as it is.
std::string decode_octal(std::string_view text);

/// Replaces `$NAME` and `${NAME}` anywhere in `text` by `value_of(NAME, position in text)`. Returns nullopt for a `$`
/// in front of anything else, and where `value_of` returns nullopt.
std::optional<std::string> expand_variables(
    std::string_view text,
    const std::function<std::optional<std::string>(std::string_view name, std::size_t position)>& value_of);

/// Returns the Levenshtein distance with a transposition of neighbours as one edit (Damerau), or limit + 1 if it is
/// more than `limit`.
std::size_t edit_distance(std::string_view a, std::string_view b, std::size_t limit = 8);
/// Returns the candidate nearest to `word`, if it is near enough to be a typing mistake (at most a third of the length,
/// max 3).
std::optional<std::string> did_you_mean(std::string_view word, const std::vector<std::string>& candidates);
/// Returns "did you mean `X`?", or `otherwise` where no candidate is near: the usual hint.
std::string did_you_mean_hint(std::string_view word, const std::vector<std::string>& candidates,
                              const std::string& otherwise = {});
/// Returns the hint for a word that is none of `names`: "did you mean `X`?", also for one of `further`, or the first of
/// the names behind `front` ("the mounts are"); "" where there are none.
std::string name_hint(std::string_view word, const std::vector<std::string>& names, std::string_view front,
                      std::vector<std::string> further = {});

/// Returns `bytes` with U+FFFD in place of every byte that is not valid UTF-8; for JSON and terminals.
std::string to_utf8(std::string_view bytes);
bool is_utf8(std::string_view bytes);
std::string base64(std::string_view bytes);
/// Padding may be missing. Returns nullopt for a text that is not base64.
std::optional<std::string> decode_base64(std::string_view text);

/// Writes a size: 0 -> "0 B", 1536 -> "1.5 KiB", in powers of 1024 with one decimal below 10.
std::string format_bytes(std::uint64_t bytes);
/// Writes microseconds as "87 us", "1.2 ms", "3.4 s", "2 min 5 s".
std::string format_duration(std::int64_t microseconds);
/// Reads "10", "10s", "500ms", "2min", "1h", "30d". Returns milliseconds (a bare number is seconds, fractions are
/// allowed), or nullopt for anything else.
std::optional<std::int64_t> parse_duration(std::string_view text);
/// Reads "4096", "64K", "10G", "1.5TiB" (powers of 1024). Returns bytes, or nullopt for anything else.
std::optional<std::uint64_t> parse_size(std::string_view text);
/// Reads "2775", "0755" (octal, at most 07777). Returns mode bits, or nullopt for anything else.
std::optional<unsigned> parse_mode(std::string_view text);
std::string format_mode(unsigned mode); ///< 04755 -> "4755", 0644 -> "0644"

/// Returns the name of an enumerator. The last name stands for all numbers beyond it, because bytes from another
/// process may hold any number.
template <class Enum, std::size_t N> const char* name_in(const std::array<const char*, N>& names, Enum value) {
  return names[std::min(static_cast<std::size_t>(value), N - 1)];
}

/// True if `word` is one of `words`.
bool contains(const std::vector<std::string>& words, std::string_view word);

/// Returns "1 file" or "3 files": the noun is in the plural for every count but 1.
std::string count_of(std::size_t count, std::string_view noun);

} // namespace sharefs
