#pragma once
// Which mirrors a command of `sharefs mirror` is about.
#include "cli/context.hpp"
#include "fleet/mirror.hpp"

#include <string>
#include <vector>

namespace sharefs::cli {

/// Those of sharefs.yaml with these names, or all. Errors: `config`, `usage` for an unknown name or where there is
/// none.
Result<std::vector<fleet::Mirror>> chosen_mirrors(Context& context, const std::vector<std::string>& names);

} // namespace sharefs::cli
