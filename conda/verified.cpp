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

std::string format_verified(const Generation& generation, std::int64_t now, const std::string& fingerprint) {
  return fmt::format("{} {} {}{}{}\n", generation.number, generation.created, now, fingerprint.empty() ? "" : " ",
                     fingerprint);
}

std::int64_t verified_at(std::string_view text, const Generation& generation) {
  const auto words = split_words(trim(text));
  std::int64_t when = 0;
  const bool known_again = words.size() == 4 && words[3].size() == 64; // hexadecimal digits
  if ((words.size() != 3 && !known_again) || words[0] != std::to_string(generation.number) ||
      words[1] != std::to_string(generation.created))
    return 0;
  const auto* const end = words[2].data() + words[2].size();
  const auto parsed = std::from_chars(words[2].data(), end, when);
  return parsed.ec == std::errc() && parsed.ptr == end ? std::max<std::int64_t>(when, 0) : 0;
}

std::string verified_fingerprint(std::string_view text, const Generation& generation) {
  const auto words = split_words(trim(text));
  return verified_at(text, generation) != 0 && words.size() == 4 ? words[3] : std::string();
}

} // namespace sharefs::conda
