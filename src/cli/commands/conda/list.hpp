#pragma once
// What `conda list` shows, for `doctor`, too.
#include "cli/context.hpp"
#include "conda/inventory.hpp"

namespace sharefs::cli {

/// The environments of the store, with who links to them; a user other than root sees the links of the own home only.
/// `only`: an environment's name; empty: all.
Result<conda::Inventory> read_inventory(Context& context, const std::string& only);

} // namespace sharefs::cli
