#pragma once
#include "base/result.hpp"
#include "config/config.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace sharefs::config {

struct Checked {
  Config config; ///< the values that are right
  std::vector<Error> errors;
};
/// Reads the text of sharefs.yaml. Returns the Config and all errors, in the order of the file; `file` is used in
/// messages only. An error has the code `config`: `FILE:LINE:COLUMN: what`, the source line with a caret in
/// Error::context, and a hint that sharefs would accept. Errors are unknown, duplicate and missing keys, wrong values,
/// and server names that look like a misspelt name of the file. YAML that cannot be parsed is one error.
Checked check(std::string_view yaml, const std::string& file);
/// As check(), but returns only the first error.
Result<Config> parse(std::string_view yaml, const std::string& file);

} // namespace sharefs::config
