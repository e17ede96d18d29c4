#pragma once
#include "base/number.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

namespace sharefs::sys {

inline constexpr std::size_t k_stat_parent = 4, k_stat_start = 22;

/// Reads a number from the text of /proc/PID/stat (proc(5)); `field` counts from 1 and must be more than 2. The second
/// field is the program's name in parentheses, and may itself contain spaces and parentheses.
inline std::optional<std::uint64_t> stat_field(std::string_view text, std::size_t field) {
  const auto fields = split_words(text.substr(std::min(text.rfind(')') + 1, text.size())));
  const std::size_t index = field - 3;
  return index < fields.size() ? parse_number<std::uint64_t>(fields[index]) : std::nullopt;
}

} // namespace sharefs::sys
