#include "config/table.hpp"

#include "base/text.hpp"

#include <array>
#include <fmt/format.h>
#include <map>

namespace sharefs::config {

namespace {

using Children = std::map<std::string, std::vector<Child>, std::less<>>;

Children index_keys() {
  Children index;
  for (const auto& key : keys()) {
    index.try_emplace(std::string(key.name)); // a key without children has an empty list
    const auto dot = key.name.rfind('.');
    const auto parent = dot == std::string_view::npos ? std::string_view{} : key.name.substr(0, dot);
    auto name = last_name(key);
    const bool list = name.ends_with("[]");
    if (list)
      name.remove_suffix(2);
    index[std::string(parent)].push_back({name, list, &key});
  }
  return index;
}

} // namespace

const std::vector<Child>& children_of(std::string_view parent) {
  static const Children k_index = index_keys();
  static const std::vector<Child> k_none;
  const auto found = k_index.find(parent);
  return found == k_index.end() ? k_none : found->second;
}

const Key& key_named(std::string_view name) {
  for (const auto& key : keys())
    if (key.name == name)
      return key;
  return keys().front(); // a mistake of the caller, found by its unit test
}

std::string_view last_name(const Key& key) {
  const auto dot = key.name.rfind('.');
  return dot == std::string_view::npos ? key.name : key.name.substr(dot + 1);
}

std::vector<std::string> choices_of(const Key& key) {
  return key.choices.empty() ? std::vector<std::string>{} : split(key.choices, '|');
}

std::string value_text(const Key& key, std::string_view quote) {
  constexpr std::array<std::pair<ValueType, std::string_view>, 7> k_names{
      {{ValueType::text, "text"},
       {ValueType::path, "path"},
       {ValueType::integer, "integer"},
       {ValueType::mode, "mode"},
       {ValueType::text_list, "list of text"},
       {ValueType::path_list, "path or list of paths"},
       {ValueType::mapping, "mapping"}}};
  for (const auto& [type, name] : k_names)
    if (type == key.type)
      return key.name.ends_with("[]") ? "list of mappings" : std::string(name);
  const auto between = fmt::format("{0}, {0}", quote);
  const auto choices = fmt::format("{}{}{}", quote, join(choices_of(key), between), quote);
  return key.type == ValueType::access ? choices + " or mapping" : choices;
}

} // namespace sharefs::config
