// The table of docs/configuration.md: declared in config/keys.hpp.
#include "base/text.hpp"
#include "config/table.hpp"

#include <fmt/format.h>

namespace sharefs::config {

namespace {

/// A `|` would end the cell, also inside of backticks.
std::string cell(std::string_view text) {
  return join(split(text, '|'), "\\|");
}

std::string type_cell(const Key& key) {
  if (key.type == ValueType::choice)
    return "`" + join(choices_of(key), "`, `") + "`";
  if (key.type == ValueType::access)
    return "`" + join(choices_of(key), "`, `") + "` or mapping";
  if (key.name.ends_with("[]"))
    return "list of mappings";
  return std::string(type_name(key));
}

std::string default_cell(const Key& key) {
  if (key.required)
    return "**required**";
  return key.fallback.empty() ? "" : fmt::format("`{}`", key.fallback);
}

} // namespace

std::string keys_markdown() {
  std::string out = "| key | value | default | meaning |\n|---|---|---|---|\n";
  for (const auto& key : keys())
    out += fmt::format("| `{}` | {} | {} | {} |\n", key.name, cell(type_cell(key)), cell(default_cell(key)),
                       cell(key.description));
  return out;
}

} // namespace sharefs::config
