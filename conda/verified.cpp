#include "conda/verified.hpp"

#include "base/path.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>

namespace sharefs::conda {

std::string verified_path(const std::string& store, const std::string& environment) {
  return join_path(generations_path(store, environment), "verified");
}

std::string format_verified(const Generation& generation, std::int64_t now) {
  return fmt::format("{} {} {}\n", generation.number, generation.created, now);
}

std::int64_t verified_at(std::string_view text, const Generation& generation) {
  const auto words = split_words(trim(text));
  std::int64_t when = 0;
  if (words.size() != 3 || words[0] != std::to_string(generation.number) ||
      words[1] != std::to_string(generation.created))
    return 0;
  const auto* const end = words[2].data() + words[2].size();
  const auto parsed = std::from_chars(words[2].data(), end, when);
  return parsed.ec == std::errc() && parsed.ptr == end ? std::max<std::int64_t>(when, 0) : 0;
}

} // namespace sharefs::conda
