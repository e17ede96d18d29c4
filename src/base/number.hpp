#pragma once
#include <charconv>
#include <concepts>
#include <optional>
#include <string_view>

namespace sharefs {

/// Reads the whole text as a number, "42". Returns nullopt for anything else: an empty text, a sign where the type has
/// none, blanks, a number that the type cannot hold.
template <std::integral Number> std::optional<Number> parse_number(std::string_view text, int base = 10) {
  Number number{};
  const char* const end = text.data() + text.size(); // NOLINT(bugprone-suspicious-stringview-data-usage)
  // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage)
  const auto [stop, error] = std::from_chars(text.data(), end, number, base);
  return error == std::errc() && stop == end ? std::optional(number) : std::nullopt;
}

} // namespace sharefs
