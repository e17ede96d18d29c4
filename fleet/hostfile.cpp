// Hostfiles: files with one node per line.
#include "base/number.hpp"
#include "base/text.hpp"
#include "fleet/node.hpp"

#include <fmt/format.h>
#include <unordered_map>

namespace sharefs::fleet {

namespace {

/// Reads one line; nullopt if it has another form.
std::optional<Node> parse_node(std::string_view line) {
  const auto comment = line.find(" #");
  const auto words = split_words(line.substr(0, comment));
  Node node{.name = words.front()};
  if (const auto at = node.name.find('@'); at != std::string::npos) { // the form of Open MPI
    node.user = node.name.substr(0, at);
    node.name.erase(0, at + 1);
  }
  if (const auto colon = node.name.rfind(':'); colon != std::string::npos) { // the form of MPICH
    node.slots = parse_number<unsigned>(std::string_view(node.name).substr(colon + 1));
    if (!node.slots)
      return std::nullopt;
    node.name.erase(colon);
  }
  for (auto word = words.begin() + 1; word != words.end(); ++word) {
    const auto equals = word->find('=');
    const auto key = word->substr(0, equals);
    const auto value =
        equals == std::string::npos ? std::nullopt : parse_number<unsigned>(std::string_view(*word).substr(equals + 1));
    const bool is_limit = key == "max_slots" || key == "max-slots";
    if (!value || (key != "slots" && !is_limit) || (!is_limit && node.slots))
      return std::nullopt;
    if (!is_limit)
      node.slots = value;
  }
  const auto names = expand(node.name);
  if (!names || names->size() != 1 || names->front() != node.name)
    return std::nullopt;
  return node;
}

} // namespace

Result<std::vector<Node>> parse_hostfile(std::string_view text, const std::string& file) {
  std::vector<Node> nodes;
  std::unordered_map<std::string, int> lines;
  int number = 0;
  for (const auto& line : split_lines(text)) {
    const Origin origin{file, ++number, 1};
    const auto content = trim(line);
    if (content.empty() || content.front() == '#')
      continue;
    auto node = parse_node(content);
    if (!node)
      return fail(ErrorCode::config, fmt::format("{}: not a node: `{}`", origin.text(), to_utf8(content)),
                  "a line is `NAME slots=N` (DeepSpeed, Open MPI), `NAME:N` (MPICH) or `NAME`");
    if (const auto [first, fresh] = lines.try_emplace(node->name, number); !fresh)
      return fail(ErrorCode::config,
                  fmt::format("{}: {} stands on line {} already", origin.text(), node->name, first->second),
                  "keep one of them: DeepSpeed refuses such a file");
    if (nodes.size() == k_most_nodes)
      return fail(ErrorCode::config, fmt::format("{}: more than {} nodes", origin.text(), k_most_nodes));
    node->origin = origin;
    nodes.push_back(std::move(*node));
  }
  if (nodes.empty())
    return fail(ErrorCode::config, fmt::format("{}: no node stands in it", file),
                "write a line `NAME slots=N` for each");
  return nodes;
}

} // namespace sharefs::fleet
