#pragma once
// Choosing the mirrors for a command of `sharefs mirror`.
#include "cli/context.hpp"
#include "fleet/mirror.hpp"

#include <string>
#include <vector>

namespace sharefs::cli {

/// Returns the mirrors of sharefs.yaml with these names, or all. Errors: `config`, `usage` for an unknown name or if
/// there is no mirror.
Result<std::vector<fleet::Mirror>> chosen_mirrors(Context& context, const std::vector<std::string>& names);

} // namespace sharefs::cli
