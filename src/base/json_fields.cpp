#include "base/json_fields.hpp"

namespace sharefs {

nlohmann::ordered_json bytes_to_json(std::string_view bytes) {
  if (is_utf8(bytes))
    return std::string(bytes);
  return nlohmann::ordered_json{{"base64", base64(bytes)}};
}

std::optional<std::string> bytes_from_json(const nlohmann::ordered_json& json) {
  if (json.is_string())
    return json.get<std::string>();
  const auto& encoded = member(json, "base64");
  return encoded.is_string() ? decode_base64(encoded.get_ref<const std::string&>()) : std::nullopt;
}

} // namespace sharefs
