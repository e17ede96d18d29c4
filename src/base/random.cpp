#include "base/random.hpp"

#include <random>
#include <string_view>

namespace sharefs {

std::string random_letters(std::size_t count) {
  static constexpr std::string_view k_letters = "abcdefghijklmnopqrstuvwxyz0123456789";
  std::random_device source;
  std::string out;
  for (std::size_t i = 0; i < count; ++i)
    out += k_letters[source() % k_letters.size()];
  return out;
}

} // namespace sharefs
