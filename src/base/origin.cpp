#include "base/origin.hpp"

#include <fmt/format.h>

namespace sharefs {

std::string Origin::text() const {
  return line > 0 ? fmt::format("{}:{}:{}", file, line, column) : file;
}

} // namespace sharefs
