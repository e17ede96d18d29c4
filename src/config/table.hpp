#pragma once
// Look-ups in the key table, shared by the checks, the schema and the documentation.
#include "config/keys.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace sharefs::config {

/// A key as it is allowed inside of its parent.
struct Child {
  std::string_view name; ///< without `[]`; `*` stands for any name
  bool list = false;     ///< the value is a list of what `key` describes
  const Key* key = nullptr;
};

/// Keys directly below `parent` ("" is the whole document), in the order of the table.
const std::vector<Child>& children_of(std::string_view parent);
/// The row of this full name; the table is known to have it.
const Key& key_named(std::string_view name);
/// "servers.*.exports[].path" -> "path"
std::string_view last_name(const Key& key);
std::vector<std::string> choices_of(const Key& key);
/// What a value of the key looks like: "path", "list of mappings", "`safe`, `recipe`, `immutable`"; `quote` stands
/// around each choice.
std::string value_text(const Key& key, std::string_view quote);

} // namespace sharefs::config
