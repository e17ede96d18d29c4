// Writes a Config as YAML and JSON; declared in config/keys.hpp.
#include "config/keys.hpp"
#include "config/yaml_text.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace sharefs::config {

namespace {

using Json = nlohmann::ordered_json;

Json object_of(std::string_view pattern, const void* object);

/// True if only the first key of the element has a value: then the element can be written as that word.
bool is_word(const Json& object) {
  return std::all_of(std::next(object.begin()), object.end(), [](const Json& value) { return value.empty(); });
}
Json word_of(const Json& object) {
  const auto& first = *object.begin();
  return first.is_array() ? first.front() : first;
}

/// Returns the value of a key in the struct of its parent; null if there is nothing to write.
Json value_of(const Key& key, const void* parent) {
  if (key.field.items != nullptr) {
    const auto items = key.field.items(parent);
    if (key.is_element() && !(key.type == ValueType::mappings && items.size() == 1)) {
      Json list = Json::array();
      for (const auto& item : items) {
        auto object = object_of(key.name, item.value);
        list.push_back(key.type == ValueType::word_or_mapping && is_word(object) ? word_of(object) : std::move(object));
      }
      return list;
    }
    if (!items.empty())
      return object_of(key.name, items.front().value);
  }
  if (key.field.get == nullptr)
    return nullptr;
  auto values = key.field.get(parent);
  if (key.is_list())
    return values;
  if (values.empty()) // an optional setting that has no value
    return nullptr;
  if (key.type == ValueType::boolean)
    return values.front() == "true";
  if (key.type == ValueType::integer)
    return std::stoi(values.front());
  return values.front().empty() ? Json(nullptr) : Json(std::move(values.front()));
}

Json object_of(std::string_view pattern, const void* object) {
  Json out = Json::object();
  for (const Key* key : children_of(pattern)) {
    if (key->any_name())
      for (const auto& [name, value] : key->field.items(object))
        out[std::string(name)] = object_of(key->name, value);
    else if (auto value = value_of(*key, object); !value.is_null())
      out[std::string(key->last_name())] = std::move(value);
  }
  return out;
}

/// Writes a value on one line, in YAML's flow style.
std::string flow_text(const Json& value) {
  if (value.is_string())
    return yaml_scalar(value.get_ref<const std::string&>());
  if (!value.is_structured())
    return value.dump();
  std::string out;
  for (const auto& [name, element] : value.items()) {
    if (!out.empty())
      out += ", ";
    if (value.is_object())
      out += yaml_scalar(name) + ": ";
    out += flow_text(element);
  }
  return value.is_object() ? "{" + out + "}" : "[" + out + "]";
}

bool is_flow(const Json& value) {
  if (!value.is_structured() || value.empty())
    return true;
  // Lists of plain values and the small mapping of `access` are easier to read on one line.
  if (value.is_object())
    return value.contains("group") && value["group"].is_string();
  for (const auto& element : value)
    if (element.is_structured())
      return false;
  return true;
}

void write_block(const Json& value, std::size_t indentation, std::string& out) {
  const std::string margin(indentation, ' ');
  bool first = true;
  for (const auto& [name, element] : value.items()) {
    const std::string front = value.is_object() ? yaml_scalar(name) + ":" : "-";
    // The first key of a list's element stands behind its `- `, which the caller has already written.
    if (!(first && out.ends_with("- ")))
      out += margin;
    first = false;
    if (is_flow(element)) {
      out += front + " " + flow_text(element) + "\n";
    } else if (value.is_array()) {
      out += "- ";
      write_block(element, indentation + 2, out);
    } else {
      out += front + "\n";
      write_block(element, indentation + 2, out);
    }
  }
}

} // namespace

nlohmann::ordered_json to_json(const Config& config) {
  return object_of("", &config);
}

std::string to_yaml(const Config& config) {
  std::string out;
  write_block(to_json(config), 0, out);
  return out;
}

} // namespace sharefs::config
