#pragma once
// Files of the source tree that a test compares with what the program makes.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace sharefs::test {

/// Content of a file of the source tree; "" if it cannot be read. `path` from the top, as "docs/configuration.md".
inline std::string tree_file(const std::string& path) {
  const auto top = std::filesystem::path(__FILE__).parent_path().parent_path().parent_path();
  std::ifstream stream(top / path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

} // namespace sharefs::test
