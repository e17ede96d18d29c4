#include "config/load.hpp"

#include "base/argv.hpp"
#include "base/source.hpp"
#include "base/text.hpp"
#include "config/keys.hpp"
#include "config/source.hpp"
#include "config/tree.hpp"
#include "config/yaml_text.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <set>
#include <unordered_map>

namespace sharefs::config {

namespace {

using Kind = Node::Kind;
using Keys = std::vector<const Key*>;

constexpr std::size_t k_most_comparisons = 100'000; ///< of server names; a typing mistake is not searched for beyond it

/// Where a value stands: its name for messages (`mounts.share.at`), and a place for problems of missing parts.
struct Position {
  std::string name;
  Place place;
};

Position below(const Position& parent, const Entry& entry) {
  return {parent.name.empty() ? entry.name : parent.name + "." + entry.name, entry.place};
}

std::string_view kind_name(Kind kind) {
  switch (kind) {
  case Kind::null:
    return "nothing";
  case Kind::scalar:
    return "text";
  case Kind::list:
    return "a list";
  case Kind::mapping:
    return "a mapping";
  }
  return "";
}

/// Returns "`safe`, `recipe` or `immutable`".
std::string one_of(const Key& key) {
  auto choices = key.choice_list();
  auto last = key.type == ValueType::access ? "{group, mode}" : "`" + choices.back() + "`";
  if (key.type != ValueType::access)
    choices.pop_back();
  return fmt::format("`{}` or {}", join(choices, "`, `"), last);
}

/// Returns "it needs a value (mount point)".
std::string need(std::string_view what, const Key& key) {
  return fmt::format("it needs {} ({})", what, key.description);
}

/// "a:b" was probably meant as "a: b".
std::string hint_for_text(const Node& node, const Keys& children) {
  const auto colon = node.text.find(':');
  const auto name = std::string_view(node.text).substr(0, colon);
  if (node.plain && colon != std::string::npos && colon + 1 < node.text.size() &&
      std::ranges::find(children, name, &Key::last_name) != children.end())
    return "put a space after the `:`";
  return "write its keys below it, indented by two spaces";
}

bool is_empty_list(const Node& node) {
  return node.is(Kind::null) || (node.is(Kind::list) && node.items.empty());
}

/// Returns "begin each entry with `- `: `- {name: ..., nodes: ...}`", with the required keys of the mapping.
std::string hint_for_entries(const Key& key) {
  std::vector<std::string> parts;
  for (const Key* child : children_of(key.name))
    if (child->required)
      parts.push_back(fmt::format("{}: ...", child->last_name()));
  return fmt::format("begin each entry with `- `: `- {{{}}}`", join(parts, ", "));
}

/// Offers the text as the list that was probably meant, if sharefs accepts that list.
std::string hint_for_list(const Key& key, const Node& node) {
  std::set<std::string> parts;
  bool right = node.is(Kind::scalar) && node.text.size() <= 60;
  std::string written;
  for (const auto& word : split(right ? node.text : "", ',')) {
    const auto part = trim(word);
    right = right && parts.emplace(part).second && !check_value(key, part);
    written += (written.empty() ? "" : ", ") + yaml_scalar(part);
  }
  return fmt::format("write `{}: [{}]`", key.last_name(), right ? written : "...");
}

/// Checks a tree against the key table: right values are stored in the Config, wrong ones become problems with their
/// place.
class Reader {
 public:
  Reader(const Source& source, Problems& problems) : m_source(source), m_problems(problems) {}

  Config read(const Node& root) {
    Config config;
    config.file = m_source.file();
    if (root.is(Kind::mapping))
      read_mapping(root, "", {"", {1, 1}}, &config);
    else if (root.is(Kind::null))
      m_problems.add({1, 1}, "the configuration is empty", "begin it with `version: 1`");
    else
      m_problems.add(root.place, fmt::format("a configuration must be a mapping, not {}", kind_name(root.kind)),
                     root.is(Kind::scalar) ? hint_for_text(root, children_of(""))
                                           : "write `KEY: VALUE` instead of `- `");
    resolve_servers(config);
    return config;
  }

 private:
  void report_wrong_kind(const Place& place, std::string_view name, std::string_view wanted, const Node& node,
                         std::string hint) {
    m_problems.add(place, fmt::format("`{}` must be {}, not {}", shown(name), wanted, kind_name(node.kind)),
                   std::move(hint));
  }

  void read_mapping(const Node& node, std::string_view pattern, const Position& at, void* object) {
    const auto& children = children_of(pattern);
    std::unordered_map<std::string_view, int> lines; // the line on which each key stands first
    for (const auto& entry : node.entries)
      lines.try_emplace(entry.name, entry.place.line);
    std::set<std::string_view> seen;
    std::set<std::string> meant; // keys that are not reported as missing, because they are misspelt
    for (const auto& entry : node.entries) {
      const auto child = std::ranges::find(children, std::string_view(entry.name), &Key::last_name);
      if (!seen.insert(entry.name).second) {
        m_problems.add(entry.place, fmt::format("duplicate key `{}`", shown(entry.name)),
                       fmt::format("it stands on line {} already; keep one of them", lines.at(entry.name)));
      } else if (entry.name == "<<" && entry.plain) {
        m_problems.add(entry.place, "merge keys (`<<`) are not supported",
                       "write the keys out; aliases of values do work");
        for (const Key* key : children) // a merge may bring any of the keys
          meant.emplace(key->last_name());
      } else if (children.front()->any_name()) {
        read_named_entry(entry, *children.front(), at, object);
      } else if (child != children.end()) {
        read_value(entry.value, **child, below(at, entry), object);
      } else {
        report_unknown(entry, children, lines, at, meant);
      }
    }
    for (const Key* key : children)
      if (key->required && !lines.contains(key->last_name()) && !meant.contains(std::string(key->last_name())))
        report_missing(*key, at);
  }

  void read_named_entry(const Entry& entry, const Key& key, const Position& at, void* object) {
    if (auto complaint = check_name(entry.name))
      m_problems.add(entry.place, fmt::format("`{}` {}", shown(entry.name), complaint->what), complaint->hint);
    else if (const auto meaning = entry.plain ? plain_meaning(entry.name) : std::nullopt)
      m_problems.add(entry.place, fmt::format("`{}` is {} in YAML, not a name", entry.name, *meaning),
                     fmt::format("quote it: `{}`", yaml_quoted(entry.name)));
    read_value(entry.value, key, below(at, entry), object);
  }

  void report_unknown(const Entry& entry, const Keys& children, const std::unordered_map<std::string_view, int>& lines,
                      const Position& at, std::set<std::string>& meant) {
    std::vector<std::string> names, free; // a key that is present is not offered for a misspelt one
    for (const Key* child : children) {
      names.emplace_back(child->last_name());
      if (!lines.contains(child->last_name()))
        free.push_back(names.back());
    }
    auto hint = did_you_mean_hint(entry.name, free);
    if (hint.empty())
      hint = fmt::format("{} has the keys `{}`", at.name.empty() ? "a configuration" : "`" + shown(at.name) + "`",
                         join(names, "`, `"));
    else
      meant.insert(*did_you_mean(entry.name, free));
    m_problems.add(entry.place, fmt::format("unknown key `{}`", shown(entry.name)), std::move(hint));
  }

  void report_missing(const Key& key, const Position& at) {
    if (at.name.empty())
      m_problems.add(at.place, fmt::format("the key `{}` is missing", key.last_name()),
                     "begin the file with `version: 1`");
    else
      m_problems.add(at.place, fmt::format("`{}` has no key `{}`", shown(at.name), key.last_name()),
                     fmt::format("add `{}: ...` ({})", key.last_name(), key.description));
  }

  void read_value(const Node& node, const Key& key, const Position& at, void* parent) {
    if (key.is_element())
      return read_elements(node, key, at, parent);
    if (key.type == ValueType::mapping || (key.type == ValueType::access && node.is(Kind::mapping)))
      return read_mapping_value(node, key, at, parent);
    if (key.type == ValueType::text_list || (key.type == ValueType::path_list && !node.is(Kind::scalar)))
      return read_list(node, key, at, parent);
    if (read_scalar(node, key, at))
      key.field.set(parent, {node.text});
  }

  void read_elements(const Node& node, const Key& key, const Position& at, void* parent) {
    if (key.required && is_empty_list(node))
      return m_problems.add(at.place, fmt::format("`{}` is empty", key.last_name()), need("at least one element", key));
    if (key.type == ValueType::mappings && !node.is(Kind::null) && !node.is(Kind::list))
      return read_mapping_value(node, key, at, parent);
    if (!node.is(Kind::null) && !node.is(Kind::list))
      report_wrong_kind(node.place, key.last_name(), "a list", node,
                        key.is_list() ? hint_for_list(key, node) : hint_for_entries(key));
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      const auto& item = node.items[i];
      const Position element{fmt::format("{}[{}]", at.name, i), item.place};
      if (!key.is_list() || item.is(Kind::mapping))
        read_mapping_value(item, key, element, parent);
      else if (const auto* first = children_of(key.name).front();
               read_scalar(item, key, {fmt::format("{}.{}", element.name, first->last_name()), item.place}))
        first->field.set(key.field.add(parent, "", m_source.origin(item.place)), {item.text});
    }
  }

  void read_mapping_value(const Node& node, const Key& key, const Position& at, void* parent) {
    const bool null = node.is(Kind::null);
    if (null && !key.is_element() && !key.any_name()) // `mounts:` with every entry commented out
      return;
    if (!node.is(Kind::mapping) && !(null && key.any_name()))
      return report_wrong_kind(null ? at.place : node.place, at.name, "a mapping", node,
                               node.is(Kind::list) ? "write `NAME:` or `KEY:` instead of `- `"
                                                   : hint_for_text(node, children_of(key.name)));
    const auto name = key.any_name() ? at.name.substr(at.name.find('.') + 1) : "";
    read_mapping(node, key.name, at, key.field.add(parent, name, m_source.origin(at.place)));
  }

  void read_list(const Node& node, const Key& key, const Position& at, void* parent) {
    if (is_empty_list(node)) {
      if (key.required || key.type == ValueType::path_list)
        m_problems.add(at.place, fmt::format("`{}` is empty", key.last_name()), need("at least one element", key));
      return;
    }
    if (!node.is(Kind::list))
      return report_wrong_kind(node.place, key.last_name(), "a list", node, hint_for_list(key, node));
    std::vector<std::string> texts;
    std::set<std::string_view> seen;
    for (const auto& item : node.items) {
      if (item.is(Kind::scalar) && !seen.insert(item.text).second)
        m_problems.add(item.place, fmt::format("`{}` stands in this list already", shown(item.text)),
                       "remove one of them");
      else if (read_scalar(item, key, {at.name, item.place}))
        texts.push_back(item.text);
    }
    key.field.set(parent, texts);
  }

  /// True if the node is a text that is right for the key; otherwise reports the problem.
  bool read_scalar(const Node& node, const Key& key, const Position& at) {
    const auto name = key.last_name();
    if (node.is(Kind::null)) {
      m_problems.add(at.place, fmt::format("`{}` has no value", name),
                     key.is_list()  ? "remove the empty element"
                     : key.required ? need("a value", key)
                                    : "leave the key out for its default");
    } else if (!node.is(Kind::scalar)) {
      report_wrong_kind(node.place, name, key.type == ValueType::access ? one_of(key) : "a single value", node,
                        "write the value without brackets or `- `");
    } else if (auto complaint = check_text(node, key)) {
      m_problems.add(node.place, fmt::format("`{}` {}", name, complaint->what), std::move(complaint->hint));
    } else {
      if (key.unique)
        check_unique(node, key, at);
      if (key.type == ValueType::remote)
        m_servers.push_back({parse_source(node.text).server, node.place});
      return true;
    }
    return false;
  }

  static std::optional<Complaint> check_text(const Node& node, const Key& key) {
    if (key.type == ValueType::integer && key.choices.empty() && node.plain)
      return check_value(key, node.text);
    if (key.type == ValueType::integer && !key.choices.empty()) {
      if (node.plain && node.text == key.choices)
        return std::nullopt;
      return Complaint{fmt::format("must be the number {}, not `{}`", key.choices,
                                   shown(node.plain ? node.text : yaml_quoted(node.text))),
                       fmt::format("write `{}: {}`; this sharefs knows no other", key.last_name(), key.choices)};
    }
    if (const auto choices = key.choice_list(); !choices.empty()) {
      if (std::ranges::find(choices, node.text) != choices.end())
        return std::nullopt;
      auto hint = did_you_mean_hint(node.text, choices);
      return Complaint{fmt::format("must be {}, not `{}`", one_of(key), shown(node.text)),
                       hint.empty() ? std::string(key.description) : std::move(hint)};
    }
    auto complaint = check_value(key, node.text);
    if (complaint && !node.text.empty())
      complaint->what += fmt::format(": `{}`", shown(node.text));
    if (const auto meaning = node.plain && !complaint ? plain_meaning(node.text) : std::nullopt) {
      const auto quoted = yaml_quoted(node.text);
      return Complaint{fmt::format("must be text, but `{}` is {} in YAML", shown(node.text), *meaning),
                       shown(quoted) == quoted ? fmt::format("quote it: `{}`", quoted) : "write it in quotes"};
    }
    return complaint;
  }

  /// Checks that no sibling mapping has the same value: `mounts.a.at` and `mounts.b.at`, `servers.s.exports[0].path`
  /// and `[1].path`.
  void check_unique(const Node& node, const Key& key, const Position& at) {
    const auto owner = at.name.substr(0, at.name.rfind('.'));
    const auto group = owner.substr(0, owner.find_last_of(".["));
    const auto [first, fresh] = m_unique.try_emplace(group + '\0' + node.text, Position{owner, node.place});
    if (!fresh && key.is_list())
      m_problems.add(node.place, fmt::format("`{}` stands in `{}` already", shown(node.text), shown(group)),
                     fmt::format("line {} has it; remove one of them", first->second.place.line));
    else if (!fresh)
      m_problems.add(
          node.place,
          fmt::format("`{}` is the `{}` of `{}` already", shown(node.text), key.last_name(), shown(first->second.name)),
          fmt::format("line {} has it; choose another, or keep one of the two", first->second.place.line));
  }

  /// Fills in values that depend on other sections, and checks the names of servers, which needs the whole file.
  void resolve_servers(Config& config) {
    std::unordered_map<std::string_view, std::string_view> addresses;
    std::vector<std::string> names;
    for (auto& server : config.servers) {
      if (server.address.empty())
        server.address = server.name;
      for (auto& item : server.exports)
        item.name = server.name + ":" + item.path;
      addresses.try_emplace(server.name, server.address);
      names.push_back(server.name);
    }
    for (auto& mount : config.mounts) {
      const auto known = addresses.find(mount.server);
      mount.address = known == addresses.end() ? mount.server : std::string(known->second);
    }
    std::size_t comparisons = 0;
    for (const auto& [server, place] : m_servers) {
      // A host that `servers:` does not describe is allowed, unless it looks like a misspelt name of `servers:`.
      const bool full_name = server.find_first_of(".:") != std::string::npos; // or an address
      if (full_name || addresses.contains(server))
        continue;
      comparisons += names.size();
      if (comparisons > k_most_comparisons)
        break;
      if (const auto near = did_you_mean(server, names))
        m_problems.add(place, fmt::format("no server is called `{}`", shown(server)),
                       fmt::format("did you mean `{}`? If `{}` is another machine, add it under `servers:`", *near,
                                   shown(server)));
    }
  }

  const Source& m_source;
  Problems& m_problems;
  std::unordered_map<std::string, Position> m_unique; ///< the first position of each value
  std::vector<Position> m_servers;                    ///< the names of servers in `mounts:`
};

} // namespace

Checked check(std::string_view yaml, const std::string& file) {
  const Source source(yaml, file);
  if (const auto problem = source.find_unreadable())
    return {{}, {source.error(*problem)}};
  const auto root = read_tree(source);
  if (!root)
    return {{}, {source.error(root.error())}};
  Problems problems;
  Checked checked{Reader(source, problems).read(*root), {}};
  std::ranges::stable_sort(problems.found, {}, &Problem::place);
  for (const auto& problem : problems.found)
    checked.errors.push_back(source.error(problem));
  if (problems.further > 0)
    checked.errors.push_back(
        {ErrorCode::config, fmt::format("{}: {}", file, count_of(problems.further, "further error")), {}, {}});
  return checked;
}

Result<Config> parse(std::string_view yaml, const std::string& file) {
  auto [config, errors] = check(yaml, file);
  if (errors.empty())
    return std::move(config);
  if (errors.size() > 1)
    errors.front().context +=
        fmt::format("{}  {} more: `sharefs config check {}` shows all", errors.front().context.empty() ? "" : "\n",
                    errors.size() - 1, shell_quote(file));
  return fail(errors.front());
}

} // namespace sharefs::config
