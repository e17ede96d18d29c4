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

std::string default_cell(const Key& key) {
  if (key.required)
    return "**required**";
  return key.fallback.empty() ? "" : fmt::format("`{}`", key.fallback);
}

} // namespace

std::string keys_markdown() {
  std::string out = "| key | value | default | meaning |\n|---|---|---|---|\n";
  for (const auto& key : keys())
    out += fmt::format("| `{}` | {} | {} | {} |\n", key.name, cell(value_text(key, "`")), cell(default_cell(key)),
                       cell(key.description));
  return out;
}

} // namespace sharefs::config
