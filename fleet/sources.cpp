#include "fleet/sources.hpp"

#include "base/text.hpp"
#include "base/try.hpp"

#include <fmt/format.h>
#include <unordered_map>
#include <unordered_set>

namespace sharefs::fleet {

namespace {

/// Puts the place of the text in front of an error of expand().
Result<std::vector<std::string>> at_origin(Result<std::vector<std::string>> names, const Origin& origin) {
  return std::move(names).map_error([&](Error error) {
    error.code = ErrorCode::config;
    error.message = origin.text() + ": " + error.message;
    return error;
  });
}

/// Runs a program that prints one name per line. Slurm prints a node several times.
Result<std::vector<Node>> ask_program(sys::System& system, const Argv& argv, const Origin& origin,
                                      std::string_view key) {
  const auto& program = argv.front();
  const auto answer = system.run({.argv = argv});
  if (!answer)
    return fail(answer.error().code,
                fmt::format("{}: `{}` needs {}: {}", origin.text(), key, program, answer.error().message),
                "install it here, or write the names under `nodes.list`");
  if (!answer->ok())
    return fail(ErrorCode::failed, fmt::format("{}: `{}`: {} says: {}", origin.text(), key, program,
                                               answer->timed_out ? "nothing, in 10 s" : to_utf8(trim(answer->err))));
  std::vector<Node> nodes;
  std::unordered_set<std::string> seen;
  for (const auto& line : split_lines(answer->out)) {
    if (trim(line).empty()) // nodeset prints an empty line for an unknown group
      continue;
    const auto names = expand(trim(line));
    if (!names)
      return fail(ErrorCode::failed, fmt::format("{}: `{}`: {} gave `{}`, which names no node", origin.text(), key,
                                                 program, to_utf8(line)));
    for (const auto& name : *names)
      if (seen.insert(name).second)
        nodes.push_back({.name = name, .origin = {fmt::format("{} ({})", key, origin.text())}});
  }
  if (nodes.empty())
    return fail(ErrorCode::config, fmt::format("{}: `{}` names no node", origin.text(), key));
  return nodes;
}

/// Addresses and users become part of ssh's configuration and command lines, so other characters are refused.
bool is_plain(const std::string& text) {
  constexpr std::string_view k_signs = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:%\\@+-";
  return !text.starts_with('-') && text.find_first_not_of(k_signs) == std::string::npos;
}

Result<void> add_groups(std::vector<Node>& nodes, const std::vector<NamedGroup>& groups) {
  std::unordered_map<std::string, Node*> by_name;
  for (auto& node : nodes)
    by_name.emplace(node.name, &node);
  std::unordered_set<std::string> earlier{std::string(k_all), std::string(k_servers), std::string(k_clients)};
  std::unordered_set<std::string> later;
  for (const auto& group : groups)
    later.insert(group.name);
  const auto is_group = [&](const std::string& word) { return earlier.contains(word) && !by_name.contains(word); };
  const auto hint_for_later = [&](const std::string& name, std::string otherwise) {
    return later.contains(name) && !earlier.contains(name)
               ? fmt::format("write the group {} in front of the groups that name it", name)
               : std::move(otherwise);
  };
  const Group members = [&](const std::string& name) {
    return groups_among(nodes)(name).map_error([&](Error error) {
      error.hint = hint_for_later(name, std::move(error.hint));
      return error;
    });
  };
  for (const auto& group : groups) {
    for (const auto& pattern : group.patterns) {
      TRY_ASSIGN(const auto names, at_origin(expand_words(pattern, is_group, members), group.origin));
      for (const auto& name : names) {
        const auto found = by_name.find(name);
        if (found == by_name.end()) {
          std::vector<std::string> known;
          for (const auto& one : nodes)
            known.push_back(one.name);
          return fail(ErrorCode::config,
                      fmt::format("{}: {} in the group {} is not a node", group.origin.text(), name, group.name),
                      hint_for_later(name, did_you_mean_hint(name, known)));
        }
        if (!found->second->in(group.name))
          found->second->groups.push_back(group.name);
      }
    }
    earlier.insert(group.name);
  }
  return {};
}

} // namespace

Result<std::vector<Node>> read_nodes(sys::System& system, const Sources& sources) {
  std::vector<Node> nodes;
  const auto add = [&](Result<std::vector<Node>> found) -> Result<void> {
    TRY(found);
    nodes.insert(nodes.end(), found->begin(), found->end());
    return {};
  };
  for (const auto& listed : sources.list) {
    TRY_ASSIGN(const auto names, at_origin(expand(listed.name), listed.origin));
    if (names.size() > 1 && !listed.address.empty())
      return fail(ErrorCode::config,
                  fmt::format("{}: {} has one address for {}", listed.origin.text(), listed.name,
                              count_of(names.size(), "node")),
                  "write an element of its own for each, or let a name service know them");
    for (const auto& name : names)
      nodes.emplace_back(listed).name = name;
  }
  if (!sources.hostfile.empty()) {
    const auto text = system.files().read_trusted(sources.hostfile);
    if (!text)
      return fail(text.error().code,
                  fmt::format("{}: `nodes.hostfile`: {}", sources.origin.text(), text.error().message),
                  text.error().hint.empty() ? "write a line `NAME slots=N` for each node into it" : text.error().hint);
    TRY(add(parse_hostfile(*text, sources.hostfile)));
  }
  if (!sources.slurm.empty())
    TRY(add(ask_program(system, {"sinfo", "--noheader", "--Node", "--partition=" + sources.slurm, "--format=%N"},
                        sources.origin, "nodes.slurm")));
  if (!sources.clustershell.empty())
    TRY(add(ask_program(system, {"nodeset", "--expand", "--separator=\\n", sources.clustershell}, sources.origin,
                        "nodes.clustershell")));
  TRY_ASSIGN(auto merged, merge(std::move(nodes), sources.servers));
  for (const auto& node : merged)
    if (!is_plain(node.address) || !is_plain(node.user))
      return fail(ErrorCode::config, fmt::format("{}: the address or user of {} has signs that ssh may read otherwise",
                                                 node.origin.text(), node.name));
  TRY(add_groups(merged, sources.groups));
  return merged;
}

} // namespace sharefs::fleet
