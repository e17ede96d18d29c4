// What docs/ says of the keys of sharefs.yaml.
#include "documents.hpp"

#include "base/text.hpp"
#include "config/keys.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace sharefs::config {

namespace {

using Json = nlohmann::ordered_json;

Json text_schema(ValueType element) {
  Json schema = {{"type", "string"}};
  if (element == ValueType::path || element == ValueType::path_list)
    schema["pattern"] = element == ValueType::path ? "^/" : "^[/$]";
  else
    schema["minLength"] = 1;
  return schema;
}

Json list_schema(const Key& key) {
  Json schema = {{"type", "array"}, {"items", text_schema(key.type)}, {"uniqueItems", true}};
  if (key.required || key.type == ValueType::path_list)
    schema["minItems"] = 1;
  return schema;
}

/// `type` may be null as well where sharefs takes a key whose content is commented out.
Json mapping_schema(std::string_view pattern, bool nullable);

Json value_schema(const Key& key) {
  switch (key.type) {
  case ValueType::integer:
    return key.choices.empty() ? Json{{"type", "integer"}, {"minimum", 1}, {"maximum", 9999}}
                               : Json{{"const", std::stoi(std::string(key.choices))}};
  case ValueType::boolean:
    return {{"type", "boolean"}};
  case ValueType::mode:
    return {{"type", "string"}, {"pattern", "^[0-7]{3,4}$"}};
  case ValueType::choice:
    return {{"enum", key.choice_list()}};
  case ValueType::access:
    return {{"oneOf", Json::array({Json{{"enum", key.choice_list()}}, mapping_schema(key.name, false)})}};
  case ValueType::word_or_mapping:
    return {{"oneOf", Json::array({text_schema(key.type), mapping_schema(key.name, false)})}};
  case ValueType::text_list:
    return list_schema(key);
  case ValueType::path_list:
    return {{"oneOf", Json::array({text_schema(key.type), list_schema(key)})}};
  case ValueType::mapping: {
    bool needs_keys = key.is_element();
    for (const Key* child : children_of(key.name))
      needs_keys = needs_keys || (key.any_name() && child->required);
    return mapping_schema(key.name, !needs_keys);
  }
  case ValueType::mappings:
    return mapping_schema(key.name, false);
  case ValueType::text:
  case ValueType::remote:
  case ValueType::path:
    return text_schema(key.type);
  }
  return Json::object();
}

Json described(const Key& key) {
  Json schema = {{"description", key.description}};
  Json value = value_schema(key);
  if (key.type == ValueType::mappings)
    value = {{"oneOf", Json::array({value, Json{{"type", {"array", "null"}}, {"items", value}}})}};
  else if (key.is_element() && key.required)
    value = {{"type", "array"}, {"items", std::move(value)}, {"minItems", 1}, {"uniqueItems", true}};
  else if (key.is_element())
    value = {{"type", {"array", "null"}}, {"items", std::move(value)}};
  schema.update(value);
  if (const auto fallback = key.fallback(); fallback == "[]")
    schema["default"] = Json::array();
  else if (key.type == ValueType::boolean && !fallback.empty())
    schema["default"] = fallback == "true";
  else if (!fallback.empty())
    schema["default"] = key.field.get(key.field.defaults()).front();
  return schema;
}

Json mapping_schema(std::string_view pattern, bool nullable) {
  Json schema = {{"type", "object"}};
  if (nullable)
    schema["type"] = {"object", "null"};
  const auto& children = children_of(pattern);
  if (children.front()->any_name()) {
    schema["propertyNames"] = {{"pattern", "^[^-.].{0,63}$"}};
    schema["additionalProperties"] = described(*children.front());
    return schema;
  }
  Json properties = Json::object();
  Json required = Json::array();
  for (const Key* child : children) {
    properties[std::string(child->last_name())] = described(*child);
    if (child->required)
      required.push_back(child->last_name());
  }
  schema["properties"] = std::move(properties);
  if (!required.empty())
    schema["required"] = std::move(required);
  schema["additionalProperties"] = false;
  return schema;
}

/// A `|` would end the cell, also inside of backticks.
std::string cell(std::string_view text) {
  return join(split(text, '|'), "\\|");
}

} // namespace

nlohmann::ordered_json schema() {
  Json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                 {"title", "sharefs.yaml"},
                 {"description", "Shared storage of a small cluster: what servers export and what clients mount"}};
  schema.update(mapping_schema("", false));
  return schema;
}

std::string keys_markdown() {
  std::string out = "| key | value | default | meaning |\n|---|---|---|---|\n";
  for (const auto& key : keys()) {
    const auto fallback = key.fallback().empty() ? "" : fmt::format("`{}`", key.fallback());
    out += fmt::format("| `{}` | {} | {} | {} |\n", key.name, cell(key.value_text("`")),
                       key.required ? "**required**" : cell(fallback), cell(key.description));
  }
  return out;
}

} // namespace sharefs::config
