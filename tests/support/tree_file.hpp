#pragma once
// Files of the source tree that a test compares with what the program makes.
#include "support/content_of.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace sharefs::test {

inline std::filesystem::path tree_path(const std::string& path) {
  return std::filesystem::path(__FILE__).parent_path().parent_path().parent_path() / path;
}

/// Content of a file of the source tree; "" if it cannot be read. `path` from the top, as "docs/configuration.md".
inline std::string tree_file(const std::string& path) {
  return content_of(tree_path(path));
}

/// The same of one that is made from the program: SHAREFS_GOLDEN_UPDATE=1 writes it first.
inline std::string tree_file(const std::string& path, const std::string& made) {
  if (std::getenv("SHAREFS_GOLDEN_UPDATE") != nullptr)
    std::ofstream(tree_path(path), std::ios::binary) << made;
  return tree_file(path);
}

} // namespace sharefs::test
