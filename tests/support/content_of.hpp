#pragma once
// The whole content of a file that a test reads.
#include <fstream>
#include <sstream>
#include <string>

namespace sharefs::test {

/// "" if it cannot be read. Not by iterators: without optimisation these take seconds for 100 MB.
inline std::string content_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return std::move(text).str();
}

} // namespace sharefs::test
