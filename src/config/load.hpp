#pragma once
#include "base/result.hpp"
#include "config/config.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace sharefs::config {

struct Checked {
  Config config; ///< what is right
  std::vector<Error> errors;
};
/// Text of sharefs.yaml -> Config and all that is wrong with it, in the order of the file. `file` is only for messages.
/// Errors (code `config`): `FILE:LINE:COLUMN: what`, the source line with a caret in Error::context, and a hint that
/// sharefs would take. Wrong are unknown, duplicate and missing keys, wrong values, and names of servers that look like
/// a typing mistake in one of the file. YAML that cannot be read at all is one error.
Checked check(std::string_view yaml, const std::string& file);
/// As check(), with the first error only.
Result<Config> parse(std::string_view yaml, const std::string& file);

} // namespace sharefs::config
