#include "base/random.hpp"

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <sys/random.h>
#include <system_error>

/// Debian's static libstdc++ links std::random_device into every program, and with it arc4random(3) of glibc 2.36,
/// which Ubuntu 22.04 and RHEL 9 do not have. The linker finds this definition first.
extern "C" __attribute__((visibility("hidden"))) std::uint32_t arc4random() noexcept {
  std::uint32_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != static_cast<ssize_t>(sizeof number))
    std::abort();
  return number;
}

namespace sharefs {

namespace {
constexpr std::string_view k_letters = "abcdefghijklmnopqrstuvwxyz0123456789";
}

bool are_random_letters(std::string_view text) {
  return !text.empty() && text.find_first_not_of(k_letters) == std::string_view::npos;
}

std::string random_letters(std::size_t count) {
  std::string out;
  std::array<unsigned char, 64> bytes{};
  while (out.size() < count) {
    const ssize_t got = ::getrandom(bytes.data(), bytes.size(), 0);
    if (got < 0 && errno != EINTR)
      throw std::system_error(errno, std::generic_category(), "getrandom");
    for (ssize_t i = 0; i < got && out.size() < count; ++i)
      // 252 is 7 times 36: every letter is equally likely.
      if (const auto byte = bytes.at(static_cast<std::size_t>(i)); byte < 252)
        out += k_letters[byte % k_letters.size()];
  }
  return out;
}

} // namespace sharefs
