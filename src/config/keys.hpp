#pragma once
// The one table of configuration keys: feeds the parser, `config show|check|schema|keys` and docs/configuration.md.
#include "config/config.hpp"

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>

namespace sharefs::config {

enum class ValueType { text, path, integer, mode, text_list, path_list, mapping, choice, access };

struct Key {
  std::string_view name; ///< `servers.*.exports[].path`: `*` is a name of the user's choice, `[]` an element of a list
  ValueType type;
  std::string_view fallback; ///< default as written in YAML; empty: none
  bool required;
  std::string_view choices; ///< for ValueType::choice: "safe|recipe|immutable"
  std::string_view description;
};
std::span<const Key> keys();

std::string to_yaml(const Config& config); ///< every key with its value, defaults included
nlohmann::ordered_json to_json(const Config& config);
nlohmann::ordered_json schema(); ///< JSON Schema 2020-12 made from the table
std::string keys_markdown();     ///< the table of docs/configuration.md

} // namespace sharefs::config
