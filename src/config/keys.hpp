#pragma once
// The one table of configuration keys; a row holds everything about its key. The parser, `config check|show|keys` and
// the documents that tests/unit/config/documents.cpp writes to docs/ use it.
#include "config/config.hpp"

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sharefs::config {

enum class ValueType {
  text,
  remote,
  path,
  integer,
  boolean,
  mode,
  text_list,
  path_list,
  mapping,
  mappings, ///< one mapping, or a list of them
  choice,
  access,
  word_or_mapping ///< a word stands for a mapping that has only its first key, with this value
};

/// The reason why a value is refused: `what` completes the sentence "`at` ...".
struct Complaint {
  std::string what, hint;
  std::string instead = {}; ///< a value that may be right; the hint offers it if sharefs accepts it
};
using Rule = std::optional<Complaint>(std::string_view value);

/// A struct that one mapping of the file describes.
struct Item {
  std::string_view name; ///< of `servers.*` and `mounts.*`
  const void* value = nullptr;
};

/// How to read and write a key's value in the struct of the mapping around it. Values are texts as in the file; a list
/// has several.
struct Field {
  std::vector<std::string> (*get)(const void* parent) = nullptr;
  void (*set)(void* parent, const std::vector<std::string>& values) = nullptr;
  // Only for mappings: adds one more struct and returns it; lists the existing ones.
  void* (*add)(void* parent, const std::string& name, const Origin& origin) = nullptr;
  std::vector<Item> (*items)(const void* parent) = nullptr;
  const void* (*defaults)() = nullptr; ///< a parent with the defaults of config.hpp
};

struct Key {
  std::string_view name; ///< `servers.*.exports[].path`: `*` is a name that the user chooses, `[]` an element of a list
  ValueType type;
  bool required;
  std::string_view choices; ///< for choice, access, boolean and integer: "safe|recipe|immutable"
  std::string_view description;
  Field field;
  Rule* rule = nullptr; ///< an additional rule beside that of the type
  bool unique = false;  ///< no two sibling mappings may have the same value

  [[nodiscard]] std::string_view last_name() const; ///< "servers.*.exports[].path" -> "path", without `[]`
  [[nodiscard]] bool is_element() const { return name.ends_with("[]"); }
  [[nodiscard]] bool is_list() const {
    return type == ValueType::text_list || type == ValueType::path_list || type == ValueType::word_or_mapping;
  }
  [[nodiscard]] bool any_name() const { return name.ends_with(".*"); }
  [[nodiscard]] std::vector<std::string> choice_list() const;
  /// Returns the default as a file would have it; "" if there is none.
  [[nodiscard]] std::string fallback() const;
  /// Describes the form of a value: "path", "list of mappings", "`safe`, `recipe`"; `quote` is put around each choice.
  [[nodiscard]] std::string value_text(std::string_view quote) const;
};
std::span<const Key> keys();
/// The keys directly below `parent` ("" is the whole document), in the order of the table.
const std::vector<const Key*>& children_of(std::string_view parent);

std::string to_yaml(const Config& config); ///< every key with its value, defaults included
nlohmann::ordered_json to_json(const Config& config);

// ---- values.cpp: rules for values in addition to their types, pure functions of the text that the rows name ----

Rule account_rule, below_root_rule, mount_point_rule, share_rule, client_rule, conda_rule, environment_rule, flag_rule,
    host_rule, mode_rule, nodes_rule, group_rule, partition_rule, option_rule, program_rule, remote_rule, size_rule,
    count_rule, interval_rule, textfile_rule;

/// Applies the rules of the key's type and of the key itself. Returns nullopt if the value is right. The hint offers
/// another value only if that value is right.
std::optional<Complaint> check_value(const Key& key, std::string_view value);
/// Applies the rule for a name that the user chose (`servers.*`, `mounts.*`).
std::optional<Complaint> check_name(std::string_view name);

} // namespace sharefs::config
