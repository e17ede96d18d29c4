#include "plan/json_values.hpp"

#include "base/json.hpp"
#include "base/text.hpp"

namespace sharefs::plan {

namespace {

/// Value of a base64 digit; -1 for any other character.
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

Json bytes_to_json(std::string_view bytes) {
  if (is_utf8(bytes))
    return std::string(bytes);
  return Json{{"base64", base64(bytes)}};
}

std::optional<std::string> bytes_from_json(const Json& json) {
  if (json.is_string())
    return json.get<std::string>();
  if (!json.is_object() || !json.contains("base64") || !json["base64"].is_string())
    return std::nullopt;
  return decode_base64(json["base64"].get<std::string>());
}

std::string dump_line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::optional<Json> parse_json(const std::string& text) {
  // Of a plan, the widest object is an action, and the deepest value a change of a file in one.
  constexpr JsonLimits k_limits{.bytes = 256U << 20U, .values = 20'000'000, .members = 1000};
  auto json = read_json<Json>(text, k_limits);
  return json ? std::optional(std::move(*json)) : std::nullopt;
}

Json to_json(const Error& error) {
  return Json{{"code", to_string(error.code)},
              {"message", to_utf8(error.message)},
              {"hint", to_utf8(error.hint)},
              {"context", to_utf8(error.context)}};
}

} // namespace sharefs::plan
