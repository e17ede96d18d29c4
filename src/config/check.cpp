#include "config/check.hpp"

#include "base/text.hpp"
#include "config/table.hpp"
#include "config/values.hpp"
#include "config/yaml_text.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <unordered_map>

namespace sharefs::config {

namespace {

using Kind = Node::Kind;

/// Where a value stands: for messages (`mounts.share.at`) and for what has no place of its own.
struct Position {
  std::string name;
  Place place;
};

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

/// "a:b" was probably meant as "a: b".
std::string scalar_for_mapping_hint(const Node& node) {
  const auto colon = node.text.find(':');
  if (node.plain && colon != std::string::npos && colon + 1 < node.text.size())
    return "put a space after the `:`";
  return "write its keys below it, indented by two spaces";
}

std::string list_example(const Key& key, const Node& node) {
  std::vector<std::string> parts;
  if (node.is(Kind::scalar) && node.text.size() <= 60)
    for (const auto& part : split(node.text, ','))
      if (!trim(part).empty())
        parts.push_back(yaml_scalar(trim(part)));
  return fmt::format("write `{}: [{}]`", last_name(key), parts.empty() ? "..." : shown(join(parts, ", ")));
}

class Checker {
 public:
  explicit Checker(FirstProblem& problem) : m_problem(problem) {}

  void mapping(const Node& node, std::string_view pattern, const Position& at) {
    const auto& children = children_of(pattern);
    const bool named = children.size() == 1 && children.front().name == "*";
    std::unordered_map<std::string_view, int> seen;
    bool complete = true; // no key that may be a missing one misspelt
    for (const auto& entry : node.entries) {
      if (!seen.try_emplace(entry.name, entry.place.line).second)
        complain(entry.place, [&] {
          return Complaint{fmt::format("duplicate key `{}`", shown(entry.name)),
                           fmt::format("it stands on line {} already; keep one of them", seen.at(entry.name))};
        });
      else if (entry.name == "<<" && entry.plain)
        complete = merge_key(entry);
      else if (named)
        named_entry(entry, *children.front().key, at);
      else
        complete = known_entry(entry, children, at) && complete;
    }
    if (complete)
      missing(node, children, at);
  }

 private:
  /// `describe` is called only if the problem would be the first: a broken file of a mebibyte has very many.
  template <class Describe> void complain(const Place& place, Describe&& describe) {
    if (!m_problem.wants(place))
      return;
    Complaint complaint = describe();
    m_problem.add({place, std::move(complaint.what), std::move(complaint.hint)});
  }

  static Position below(const Position& parent, const Entry& entry) {
    return {parent.name.empty() ? entry.name : parent.name + "." + entry.name, entry.place};
  }

  void named_entry(const Entry& entry, const Key& key, const Position& at) {
    const auto meaning = entry.plain ? plain_meaning(entry.name) : std::nullopt;
    if (meaning)
      complain(entry.place, [&] {
        return Complaint{fmt::format("`{}` is {} in YAML, not a name", shown(entry.name), *meaning),
                         fmt::format("quote it: `{}`", yaml_quoted(shown(entry.name)))};
      });
    else if (auto complaint = complaint_about_name(entry.name))
      complain(entry.place,
               [&] { return Complaint{fmt::format("`{}` {}", shown(entry.name), complaint->what), complaint->hint}; });
    value(entry.value, key, below(at, entry));
  }

  bool merge_key(const Entry& entry) {
    complain(entry.place, [] {
      return Complaint{"merge keys (`<<`) are not supported", "write the keys out; aliases of values do work"};
    });
    return false;
  }

  /// False if no such key is known here.
  bool known_entry(const Entry& entry, const std::vector<Child>& children, const Position& at) {
    const auto child = std::ranges::find(children, std::string_view(entry.name), &Child::name);
    if (child == children.end()) {
      complain(entry.place, [&] { return unknown(entry, children, at); });
      return false;
    }
    const auto position = below(at, entry);
    if (child->list)
      list_of_mappings(entry.value, *child, position);
    else
      value(entry.value, *child->key, position);
    return true;
  }

  static Complaint unknown(const Entry& entry, const std::vector<Child>& children, const Position& at) {
    std::vector<std::string> names;
    for (const auto& child : children)
      names.emplace_back(child.name);
    auto hint = did_you_mean_hint(entry.name, names);
    if (hint.empty())
      hint = fmt::format("{} has the keys `{}`", at.name.empty() ? "a configuration" : "`" + shown(at.name) + "`",
                         join(names, "`, `"));
    return {fmt::format("unknown key `{}`", shown(entry.name)), hint};
  }

  void missing(const Node& node, const std::vector<Child>& children, const Position& at) {
    for (const auto& child : children)
      if (child.key->required && node.find(child.name) == nullptr)
        complain(at.place, [&] {
          if (at.name.empty())
            return Complaint{fmt::format("the key `{}` is missing", child.name), "begin the file with `version: 1`"};
          return Complaint{fmt::format("`{}` has no key `{}`", shown(at.name), child.name),
                           fmt::format("add `{}: ...` ({})", child.name, child.key->description)};
        });
  }

  void list_of_mappings(const Node& node, const Child& child, const Position& at) {
    if (node.is(Kind::null))
      return;
    if (!node.is(Kind::list)) {
      complain(node.place, [&] {
        return Complaint{fmt::format("`{}` must be a list, not {}", child.name, kind_name(node.kind)),
                         "begin each entry with `- `"};
      });
      return;
    }
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      const auto& item = node.items[i];
      value(item, *child.key, {fmt::format("{}[{}]", at.name, i), item.place});
    }
  }

  void value(const Node& node, const Key& key, const Position& at) {
    switch (key.type) {
    case ValueType::mapping:
      return mapping_value(node, key, at);
    case ValueType::access:
      return node.is(Kind::mapping) ? mapping(node, key.name, at) : scalar(node, key, at);
    case ValueType::text_list:
      return list(node, key, at);
    case ValueType::path_list:
      return node.is(Kind::scalar) ? scalar(node, key, at) : list(node, key, at);
    default:
      return scalar(node, key, at);
    }
  }

  void mapping_value(const Node& node, const Key& key, const Position& at) {
    const bool element = key.name.ends_with("[]");
    if (node.is(Kind::mapping))
      return mapping(node, key.name, at);
    if (node.is(Kind::null) && !element) // `mounts:` with every entry commented out
      return key.name == "conda" ? void() : mapping({}, key.name, at);
    complain(node.is(Kind::null) ? at.place : node.place, [&] {
      return Complaint{fmt::format("`{}` must be a mapping, not {}", shown(at.name), kind_name(node.kind)),
                       node.is(Kind::list) ? std::string("write `NAME:` or `KEY:` instead of `- `")
                                           : scalar_for_mapping_hint(node)};
    });
  }

  void list(const Node& node, const Key& key, const Position& at) {
    const bool empty = node.is(Kind::null) || (node.is(Kind::list) && node.items.empty());
    if (empty && (key.required || key.type == ValueType::path_list))
      return complain(at.place, [&] {
        return Complaint{fmt::format("`{}` is empty", last_name(key)),
                         fmt::format("it needs at least one element ({})", key.description)};
      });
    if (empty)
      return;
    if (!node.is(Kind::list))
      return complain(node.place, [&] {
        return Complaint{fmt::format("`{}` must be a list, not {}", last_name(key), kind_name(node.kind)),
                         list_example(key, node)};
      });
    std::unordered_map<std::string_view, int> seen;
    for (const auto& item : node.items) {
      scalar(item, key, {at.name, item.place});
      if (item.is(Kind::scalar) && !seen.try_emplace(item.text, item.place.line).second)
        complain(item.place, [&] {
          return Complaint{fmt::format("`{}` stands in this list already", shown(item.text)), "remove one of them"};
        });
    }
  }

  void scalar(const Node& node, const Key& key, const Position& at) {
    const auto name = last_name(key);
    if (node.is(Kind::null))
      return complain(at.place, [&] { return Complaint{fmt::format("`{}` has no value", name), null_hint(key)}; });
    if (!node.is(Kind::scalar))
      return complain(node.place, [&] {
        const auto wanted = key.type == ValueType::access ? one_of(key) : "a single value";
        return Complaint{fmt::format("`{}` must be {}, not {}", name, wanted, kind_name(node.kind)),
                         "write the value without brackets or `- `"};
      });
    if (key.type == ValueType::integer)
      return integer(node, key);
    if (key.type == ValueType::choice || key.type == ValueType::access)
      return choice(node, key);
    if (const auto meaning = node.plain ? plain_meaning(node.text) : std::nullopt)
      return complain(node.place, [&] {
        return Complaint{fmt::format("`{}` must be text, but `{}` is {} in YAML", name, shown(node.text), *meaning),
                         fmt::format("quote it: `{}`", yaml_quoted(shown(node.text)))};
      });
    if (m_problem.wants(node.place))
      if (auto complaint = complaint_about(key, node.text))
        complain(node.place, [&] {
          const auto given = node.text.empty() ? "" : fmt::format(": `{}`", shown(node.text));
          return Complaint{fmt::format("`{}` {}{}", name, complaint->what, given), complaint->hint};
        });
  }

  static std::string null_hint(const Key& key) {
    return key.required ? fmt::format("write {}", key.description) : "leave the key out for its default";
  }

  void integer(const Node& node, const Key& key) {
    if (node.plain && node.text == key.choices)
      return;
    complain(node.place, [&] {
      return Complaint{fmt::format("`{}` must be the number {}, not `{}`", last_name(key), key.choices,
                                   node.plain ? shown(node.text) : yaml_quoted(shown(node.text))),
                       fmt::format("write `{}: {}`; this sharefs knows no other", last_name(key), key.choices)};
    });
  }

  void choice(const Node& node, const Key& key) {
    const auto choices = choices_of(key);
    if (std::ranges::find(choices, node.text) != choices.end())
      return;
    complain(node.place, [&] {
      auto hint = did_you_mean_hint(node.text, choices);
      if (hint.empty())
        hint = key.description;
      return Complaint{fmt::format("`{}` must be {}, not `{}`", last_name(key), one_of(key), shown(node.text)), hint};
    });
  }

  /// "`safe`, `recipe` or `immutable`"
  static std::string one_of(const Key& key) {
    auto choices = choices_of(key);
    if (key.type != ValueType::access) {
      const auto last = choices.back();
      choices.pop_back();
      return fmt::format("`{}` or `{}`", join(choices, "`, `"), last);
    }
    return fmt::format("`{}` or {{group, mode}}", join(choices, "`, `"));
  }

  FirstProblem& m_problem;
};

} // namespace

void check_against_keys(const Node& root, FirstProblem& problem) {
  if (root.is(Kind::null)) {
    problem.add({{1, 1}, "the configuration is empty", "run `sharefs init` to write one, or begin with `version: 1`"});
    return;
  }
  if (!root.is(Kind::mapping)) {
    const auto hint = root.is(Kind::scalar) ? scalar_for_mapping_hint(root) : "write `KEY: VALUE` instead of `- `";
    problem.add({root.place, fmt::format("a configuration must be a mapping, not {}", kind_name(root.kind)), hint});
    return;
  }
  Checker(problem).mapping(root, "", {"", {1, 1}});
}

} // namespace sharefs::config
