// Look-ups in the key table; declared in config/keys.hpp.
#include "base/text.hpp"
#include "config/keys.hpp"
#include "config/yaml_text.hpp"

#include <array>
#include <fmt/format.h>
#include <map>

namespace sharefs::config {

const std::vector<const Key*>& children_of(std::string_view parent) {
  static const auto k_index = [] {
    std::map<std::string_view, std::vector<const Key*>> index;
    for (const auto& key : keys()) {
      const auto dot = key.name.rfind('.');
      index[dot == std::string_view::npos ? "" : key.name.substr(0, dot)].push_back(&key);
    }
    return index;
  }();
  static const std::vector<const Key*> k_none;
  const auto found = k_index.find(parent);
  return found == k_index.end() ? k_none : found->second;
}

std::string_view Key::last_name() const {
  const auto last = name.substr(name.rfind('.') + 1); // npos + 1 is 0
  return is_element() ? last.substr(0, last.size() - 2) : last;
}

std::vector<std::string> Key::choice_list() const {
  return choices.empty() ? std::vector<std::string>{} : split(choices, '|');
}

std::string Key::fallback() const {
  if (required || field.defaults == nullptr)
    return {};
  const auto values = field.get(field.defaults());
  if (values.empty())
    return is_list() ? "[]" : "";
  if (type == ValueType::boolean)
    return values.front();
  return values.front().empty() ? "" : yaml_scalar(values.front());
}

std::string Key::value_text(std::string_view quote) const {
  constexpr std::array<std::pair<ValueType, std::string_view>, 8> k_names{
      {{ValueType::text, "text"},
       {ValueType::remote, "text"},
       {ValueType::path, "path"},
       {ValueType::integer, "integer"},
       {ValueType::mode, "mode"},
       {ValueType::text_list, "list of text"},
       {ValueType::path_list, "path or list of paths"},
       {ValueType::mapping, "mapping"}}};
  if (type == ValueType::word_or_mapping)
    return "list of text or mappings";
  if (type == ValueType::mappings)
    return "mapping or list of mappings";
  for (const auto& [known, words] : k_names)
    if (known == type)
      return is_element() ? "list of mappings" : std::string(words);
  const auto words = fmt::format("{0}{1}{0}", quote, join(choice_list(), fmt::format("{0}, {0}", quote)));
  return type == ValueType::access ? words + " or mapping" : words;
}

} // namespace sharefs::config
