#pragma once
// The place in a file at which a value was written.
#include <compare>
#include <string>

namespace sharefs {

struct Origin {
  std::string file;
  int line = 0, column = 0;               ///< from 1, in bytes; 0: the file as a whole
  [[nodiscard]] std::string text() const; ///< "/etc/exports:3:5", or the file alone
  friend auto operator<=>(const Origin&, const Origin&) = default;
};

} // namespace sharefs
