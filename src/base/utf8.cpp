// UTF-8 checks and base64: declared in base/text.hpp.
#include "base/text.hpp"

namespace sharefs {

namespace {

/// Length of the valid UTF-8 sequence at the front of `bytes` (RFC 3629: no overlong forms, no surrogates); 0 if none.
std::size_t sequence_length(std::string_view bytes) {
  const auto at = [&bytes](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned lead = at(0);
  if (lead < 0x80)
    return 1;
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || bytes.size() < length)
    return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((at(i) & 0xc0U) != 0x80)
      return 0;
  const bool overlong_or_surrogate = (lead == 0xe0 && at(1) < 0xa0) || (lead == 0xed && at(1) > 0x9f) ||
                                     (lead == 0xf0 && at(1) < 0x90) || (lead == 0xf4 && at(1) > 0x8f);
  return overlong_or_surrogate ? 0 : length;
}

} // namespace

bool is_utf8(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto length = sequence_length(bytes);
    if (length == 0)
      return false;
    bytes.remove_prefix(length);
  }
  return true;
}

std::string to_utf8(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  while (!bytes.empty()) {
    const auto length = sequence_length(bytes);
    if (length == 0)
      out += "\xef\xbf\xbd"; // U+FFFD
    else
      out += bytes.substr(0, length);
    bytes.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view k_alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k)
      group = group << 8U | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    for (std::size_t k = 0; k < 4; ++k)
      out += i + k <= bytes.size() ? k_alphabet[group >> (18 - 6 * k) & 63U] : '=';
  }
  return out;
}

} // namespace sharefs
