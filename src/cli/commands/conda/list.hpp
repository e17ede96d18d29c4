#pragma once
// The content of `conda list`, which `doctor` uses, too.
#include "cli/context.hpp"
#include "conda/inventory.hpp"

namespace sharefs::cli {

/// Returns the environments of the store, with the users who link to them; a user other than root sees only the links
/// of the own home. `only` is the name of one environment; empty: all.
Result<conda::Inventory> read_inventory(Context& context, const std::string& only);

} // namespace sharefs::cli
