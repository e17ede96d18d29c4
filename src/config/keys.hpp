#pragma once
// The one table of configuration keys: a row says all about its key. It feeds the parser, `config
// check|show|keys`, and what tests/unit/config/documents.cpp makes of it for docs/.
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
  mappings, ///< a list of them, or one
  choice,
  access,
  word_or_mapping ///< the word is what the first key of the mapping would say
};

/// Why a value is refused: `what` continues the sentence "`at` ...".
struct Complaint {
  std::string what, hint;
  std::string instead = {}; ///< a value to write instead; the hint says so if sharefs takes it
};
using Rule = std::optional<Complaint> (*)(std::string_view value);

/// A struct that a mapping of the file stands for.
struct Item {
  std::string_view name; ///< of `servers.*` and `mounts.*`
  const void* value = nullptr;
};

/// How a key's value lies in the struct of the mapping around it. Values are texts as in the file, several of a list.
struct Field {
  std::vector<std::string> (*get)(const void* parent) = nullptr;
  void (*set)(void* parent, const std::vector<std::string>& values) = nullptr;
  // Of mappings: the struct to fill for one more, and those that there are.
  void* (*add)(void* parent, const std::string& name, const Origin& origin) = nullptr;
  std::vector<Item> (*items)(const void* parent) = nullptr;
  const void* (*defaults)() = nullptr; ///< a parent as config.hpp initializes it
};

struct Key {
  std::string_view name; ///< `servers.*.exports[].path`: `*` is a name of the user's choice, `[]` an element of a list
  ValueType type;
  bool required;
  std::string_view choices; ///< for choice, access, boolean and integer: "safe|recipe|immutable"
  std::string_view description;
  Field field;
  Rule rule = nullptr; ///< beyond that of the type
  bool unique = false; ///< no two mappings side by side have the same

  [[nodiscard]] std::string_view last_name() const; ///< "servers.*.exports[].path" -> "path", without `[]`
  [[nodiscard]] bool is_element() const { return name.ends_with("[]"); }
  [[nodiscard]] bool is_list() const {
    return type == ValueType::text_list || type == ValueType::path_list || type == ValueType::word_or_mapping;
  }
  [[nodiscard]] bool any_name() const { return name.ends_with(".*"); }
  [[nodiscard]] std::vector<std::string> choice_list() const;
  /// The default as it is written in a file; empty: none.
  [[nodiscard]] std::string fallback() const;
  /// The form of a value: "path", "list of mappings", "`safe`, `recipe`"; `quote` stands around each choice.
  [[nodiscard]] std::string value_text(std::string_view quote) const;
};
std::span<const Key> keys();
/// The keys directly below `parent` ("" is the whole document), in the order of the table.
const std::vector<const Key*>& children_of(std::string_view parent);

std::string to_yaml(const Config& config); ///< every key with its value, defaults included
nlohmann::ordered_json to_json(const Config& config);

} // namespace sharefs::config
