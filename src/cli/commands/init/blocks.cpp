#include "cli/commands/init/blocks.hpp"

#include "base/text.hpp"
#include "base/visible.hpp"
#include "config/load.hpp"
#include "config/yaml_text.hpp"

#include <fmt/format.h>

namespace sharefs::cli {

namespace {

constexpr std::size_t k_line_width = 100;
constexpr std::size_t k_most_named = 8; ///< names in one comment

} // namespace

std::string comment_out(std::string_view block, std::string_view margin) {
  std::string out;
  for (const auto& line : split_lines(block)) {
    const auto own = std::string_view(line).substr(line.starts_with(margin) ? margin.size() : 0);
    out += fmt::format("{}# {}\n", margin, visible(own));
  }
  return out;
}

std::string list_text(std::string_view margin, std::string_view key, const std::vector<std::string>& values) {
  std::vector<std::string> scalars;
  for (const auto& value : values)
    scalars.push_back(config::yaml_scalar(value));
  auto line = fmt::format("{}{}: [{}]\n", margin, key, join(scalars, ", "));
  if (line.size() <= k_line_width)
    return line;
  line = fmt::format("{}{}:\n", margin, key);
  for (const auto& scalar : scalars)
    line += fmt::format("{}  - {}\n", margin, scalar);
  return line;
}

std::string join_few(std::vector<std::string> names) {
  if (names.size() > k_most_named) {
    const auto more = names.size() - k_most_named;
    names.resize(k_most_named);
    names.push_back(fmt::format("{} more", more));
  }
  return join(names, ", ");
}

std::string find_refusal(const std::string& sections) {
  const auto parsed = config::parse("version: 1\n" + sections, "");
  if (parsed)
    return {};
  const auto& message = parsed.error().message; // ":LINE:COLUMN: what"
  const auto what = message.find(": ");
  return what == std::string::npos ? message : message.substr(what + 2);
}

std::string entry_or_comment(const std::string& sections, const std::string& entry, std::string_view margin) {
  const auto why = find_refusal(sections);
  if (why.empty())
    return entry;
  return fmt::format("{}# not taken over: {}\n", margin, visible(why)) + comment_out(entry, margin);
}

} // namespace sharefs::cli
