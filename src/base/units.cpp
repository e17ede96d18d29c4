// Sizes, durations and modes as text and back: declared in base/text.hpp.
#include "base/number.hpp"
#include "base/text.hpp"

#include <array>
#include <cstdlib>
#include <fmt/format.h>

namespace sharefs {

namespace {

/// Reads the number at the front of `text` (no sign, no exponent). Returns it and the rest of the text.
std::optional<std::pair<double, std::string_view>> read_leading_number(std::string_view text) {
  const auto end = text.find_first_not_of("0123456789.");
  const std::string digits(text.substr(0, end));
  char* stop = nullptr;
  // std::from_chars would load libm, which `run` would pay at each start.
  const double value = std::strtod(digits.c_str(), &stop);
  if (stop == digits.c_str() || *stop != '\0')
    return std::nullopt;
  return std::pair{value, end == std::string_view::npos ? std::string_view{} : text.substr(end)};
}

} // namespace

std::string format_bytes(std::uint64_t bytes) {
  constexpr std::array<const char*, 7> k_units{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  // 1023.5 would be printed as "1024 KiB": take the next unit while the rounded number does not fit.
  while (unit + 1 < k_units.size() && value >= 1023.5) {
    value /= 1024;
    ++unit;
  }
  if (unit == 0)
    return fmt::format("{} B", bytes);
  const bool one_decimal = value < 9.95;
  return one_decimal ? fmt::format("{:.1f} {}", value, k_units[unit]) : fmt::format("{:.0f} {}", value, k_units[unit]);
}

std::string format_duration(std::int64_t microseconds) {
  if (microseconds < 1000)
    return fmt::format("{} us", microseconds);
  if (microseconds < 1'000'000)
    return fmt::format("{:.1f} ms", static_cast<double>(microseconds) / 1e3);
  if (microseconds < 60'000'000)
    return fmt::format("{:.1f} s", static_cast<double>(microseconds) / 1e6);
  const auto seconds = microseconds / 1'000'000;
  if (seconds < 3600)
    return fmt::format("{} min {} s", seconds / 60, seconds % 60);
  return fmt::format("{} h {} min", seconds / 3600, seconds % 3600 / 60);
}

std::optional<std::int64_t> parse_duration(std::string_view text) {
  const auto number = read_leading_number(trim(text));
  if (!number)
    return std::nullopt;
  constexpr std::array<std::pair<std::string_view, double>, 7> k_units{
      {{"", 1e3}, {"s", 1e3}, {"ms", 1}, {"min", 6e4}, {"m", 6e4}, {"h", 3.6e6}, {"d", 8.64e7}}};
  for (const auto& [unit, milliseconds] : k_units)
    if (number->second == unit) {
      const double value = number->first * milliseconds;
      // NOLINTNEXTLINE(bugprone-incorrect-roundings): std::llround would load libm, and no duration is negative
      return value <= 1e12 ? std::optional(static_cast<std::int64_t>(value + 0.5)) : std::nullopt;
    }
  return std::nullopt;
}

std::optional<std::uint64_t> parse_size(std::string_view text) {
  const auto number = read_leading_number(trim(text));
  if (!number)
    return std::nullopt;
  auto unit = trim(number->second);
  for (const std::string_view suffix : {"iB", "B"})
    if (unit.ends_with(suffix) && (unit.size() > suffix.size() || unit == "B")) {
      unit.remove_suffix(suffix.size());
      break;
    }
  constexpr std::string_view k_prefixes = "kKmMgGtTpPeE";
  const auto prefix = unit.size() == 1 ? k_prefixes.find(unit) : std::string_view::npos;
  if (prefix == std::string_view::npos && !unit.empty())
    return std::nullopt;
  const auto factor = static_cast<double>(unit.empty() ? 1 : 1ULL << 10 * (prefix / 2 + 1));
  const double value = number->first * factor;
  return value < 1.8e19 ? std::optional(static_cast<std::uint64_t>(value)) : std::nullopt;
}

std::optional<unsigned> parse_mode(std::string_view text) {
  const auto mode = parse_number<unsigned>(text, 8);
  return mode && *mode <= 07777 ? mode : std::nullopt;
}

std::string format_mode(unsigned mode) {
  return fmt::format("{:04o}", mode & 07777U);
}

} // namespace sharefs
