#pragma once
// Reads YAML text into a tree with places. tree.cpp is the only file that includes yaml-cpp.
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
  std::string text;  ///< of a scalar: its source without quotes and escapes; never converted to a number or a flag
  bool plain = true; ///< a scalar written without quotes
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

/// Reads one document; an empty one is a null node. Aliases are replaced by copies of their anchors. Each of these is
/// refused with a message of its own: syntax errors, a second document, keys that are not text, tags, quotes that are
/// never closed, more than 32 levels or 200,000 values (after aliases). Duplicate keys and merge keys stay in the tree;
/// check() reports them.
tl::expected<Node, Problem> read_tree(const Source& source);

} // namespace sharefs::config
