#pragma once
// YAML text -> a tree with places. tree.cpp is the only file that knows yaml-cpp.
#include "config/source.hpp"

#include <string>
#include <tl/expected.hpp>
#include <vector>

namespace sharefs::config {

struct Entry;

struct Node {
  enum class Kind { null, scalar, list, mapping };
  Kind kind = Kind::null;
  Place place;
  std::string text;           ///< of a scalar: its source without quotes and escapes, never converted
  bool plain = true;          ///< a scalar written without quotes
  std::vector<Node> items;    ///< of a list
  std::vector<Entry> entries; ///< of a mapping, in the order of the file, duplicates included

  [[nodiscard]] bool is(Kind wanted) const { return kind == wanted; }
};

struct Entry {
  Place place; ///< of the key
  std::string name;
  bool plain = true;
  Node value;
};

/// One document; an empty one is a null node. Aliases are replaced by what they stand for. Refused, each with a message
/// of its own: syntax errors, a second document, keys that are no text, tags, quotes that are never closed, more than
/// 32 levels or 200,000 values (after aliases). Duplicate keys and merge keys stay in the tree: the checks name them.
tl::expected<Node, Problem> read_tree(const Source& source);

} // namespace sharefs::config
