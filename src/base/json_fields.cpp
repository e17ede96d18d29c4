#include "base/json_fields.hpp"

namespace sharefs {

namespace {

/// Returns the value of a base64 digit; -1 for any other character.
int digit_of(char c) {
  if (c >= 'A' && c <= 'Z')
    return c - 'A';
  if (c >= 'a' && c <= 'z')
    return c - 'a' + 26;
  if (c >= '0' && c <= '9')
    return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

std::optional<std::string> decode_base64(std::string_view text) {
  while (!text.empty() && text.back() == '=')
    text.remove_suffix(1);
  if (text.size() % 4 == 1)
    return std::nullopt;
  std::string bytes;
  unsigned group = 0;
  int bits = 0;
  for (const char c : text) {
    const int digit = digit_of(c);
    if (digit < 0)
      return std::nullopt;
    group = (group << 6U | static_cast<unsigned>(digit)) & 0xffffffU;
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      bytes += static_cast<char>(group >> static_cast<unsigned>(bits) & 0xffU);
    }
  }
  return bytes;
}

} // namespace

nlohmann::ordered_json bytes_to_json(std::string_view bytes) {
  if (is_utf8(bytes))
    return std::string(bytes);
  return nlohmann::ordered_json{{"base64", base64(bytes)}};
}

std::optional<std::string> bytes_from_json(const nlohmann::ordered_json& json) {
  if (json.is_string())
    return json.get<std::string>();
  if (!json.is_object() || !json.contains("base64") || !json["base64"].is_string())
    return std::nullopt;
  return decode_base64(json["base64"].get<std::string>());
}

} // namespace sharefs
