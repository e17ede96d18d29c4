#include "cachefix/files/config_text.hpp"

#include "base/json.hpp"
#include "base/text.hpp"
#include "cachefix/rules/rules.hpp"

#include <algorithm>
#include <yaml-cpp/yaml.h>

namespace sharefs::cachefix {
namespace {

constexpr std::size_t k_steps_of_key = 200; // each is compared with all rules
/// The order of members is kept, so that each is compared with all of its object.
constexpr JsonLimits k_json_limits{
    .bytes = 4U << 20U, .depth = Budget::k_nested_syntax, .values = 200'000, .members = 2'000};

/// The part of a line behind `key:`, nullopt if the line is not that key at the top level.
std::optional<std::string_view> value_part(std::string_view line, std::string_view key) {
  if (!line.starts_with(key))
    return std::nullopt;
  line.remove_prefix(key.size());
  while (line.starts_with(' '))
    line.remove_prefix(1);
  if (!line.starts_with(':') || (line.size() > 1 && line[1] != ' ' && line[1] != '\t'))
    return std::nullopt;
  return trim(line.substr(1));
}

void collect_scalars(const YAML::Node& node, const std::string& prefix, int depth, Budget& budget,
                     std::vector<NestedScalar>& found) {
  if (depth > Budget::k_nested_keys)
    return;
  for (const auto& member : node) { // an alias may stand for a whole mapping, over and over
    if (!budget.take(&Budget::steps, k_steps_of_key) || !budget.take(&Budget::bytes, prefix.size()))
      return;
    if (!member.first.IsScalar())
      continue;
    const std::string key = prefix.empty() ? member.first.Scalar() : prefix + "." + member.first.Scalar();
    if (member.second.IsScalar())
      found.push_back({key, member.second.Scalar()});
    else if (member.second.IsMap())
      collect_scalars(member.second, key, depth + 1, budget, found);
  }
}

std::optional<std::string> yaml_scalar(const std::string& text, std::string_view key) {
  std::optional<std::string> found;
  for (const std::string& line : split_lines(text)) {
    const auto part = value_part(line, key);
    if (!part)
      continue;
    std::string value(*part);
    if (!value.empty() && (value.front() == '"' || value.front() == '\'')) {
      const auto end = value.find(value.front(), 1);
      if (end == std::string::npos || value.find('\\') != std::string::npos)
        return std::nullopt;
      value = value.substr(1, end - 1);
    } else {
      if (const auto comment = value.find(" #"); comment != std::string::npos)
        value = std::string(trim(std::string_view(value).substr(0, comment)));
      if (value.empty() || std::string_view("&*!|>{[%@`#").find(value.front()) != std::string_view::npos)
        return std::nullopt;
    }
    if (found)
      return std::nullopt; // twice: which one counts is up to the reader
    found = std::move(value);
  }
  return found == "null" || found == "~" ? std::nullopt : found;
}

std::string with_yaml_scalar(const std::string& text, std::string_view key, const std::optional<std::string>& value) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\n', at), text.size() - 1) + 1;
    const std::string line = text.substr(at, end - at);
    if (!value_part(line, key))
      out += line;
    else if (value)
      out += std::string(key) + ": " + nlohmann::json(*value).dump() + "\n"; // a JSON string is a YAML one
    at = end;
  }
  return out;
}

std::optional<std::string> json_scalar(const std::string& text, std::string_view key) {
  const auto document = read_json<nlohmann::ordered_json>(text, k_json_limits);
  if (!document || !document->is_object() || !document->contains(key))
    return std::nullopt;
  const auto& member = document->at(std::string(key));
  if (member.is_boolean())
    return member.get<bool>() ? "true" : "false";
  return member.is_string() ? std::optional(member.get<std::string>()) : std::nullopt;
}

std::string with_json_scalar(const std::string& text, std::string_view key, const std::optional<std::string>& value) {
  auto document = nlohmann::ordered_json::parse(text, nullptr, false);
  if (value)
    document[std::string(key)] = *value;
  else
    document.erase(std::string(key));
  return document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

bool is_json_name(std::string_view name) {
  return name.ends_with(".json");
}

} // namespace

bool is_yaml_name(std::string_view name) {
  return name.ends_with(".yaml") || name.ends_with(".yml");
}

bool is_document_name(std::string_view name) {
  return is_yaml_name(name) || is_json_name(name);
}

std::optional<std::string> scalar_in(std::string_view name, const std::string& text, std::string_view key) {
  return is_json_name(name) ? json_scalar(text, key) : yaml_scalar(text, key);
}

std::string with_scalar(std::string_view name, const std::string& text, std::string_view key,
                        const std::optional<std::string>& value) {
  return is_json_name(name) ? with_json_scalar(text, key, value) : with_yaml_scalar(text, key, value);
}

std::vector<NestedScalar> nested_yaml_scalars(const std::string& text, Budget& budget) {
  std::vector<NestedScalar> found;
  if (!budget.take(&Budget::bytes, text.size()) || nesting_of(text, false) > Budget::k_nested_syntax)
    return found;
  try {
    if (const YAML::Node root = YAML::Load(text); root.IsMap())
      collect_scalars(root, "", 0, budget, found);
  } catch (const YAML::Exception&) {
    found.clear(); // no YAML: the program will say so
  }
  if (budget.is_spent())
    found.clear();
  return found;
}

std::optional<std::string> cache_dir_of_arguments(const std::string& text) {
  std::vector<std::string> words;
  for (const std::string& line : split_lines(text))
    for (std::string& word : split_words(line))
      words.push_back(std::move(word));
  std::optional<std::string> found;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto equals = words[i].find('=');
    if (!is_spelling_of(std::string_view(words[i]).substr(0, equals), "--cache_dir"))
      continue;
    if (equals != std::string::npos)
      found = words[i].substr(equals + 1);
    else if (i + 1 < words.size() && !looks_like_option(words[i + 1]))
      found = words[i + 1];
  }
  return found;
}

} // namespace sharefs::cachefix
