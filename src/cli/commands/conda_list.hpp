#pragma once
// What `conda list` shows, for whom it concerns, too.
#include "cli/context.hpp"
#include "conda/inventory.hpp"

namespace sharefs::cli {

struct CondaListing {
  std::string store;
  std::vector<conda::ListedEnvironment> environments;
  std::vector<sys::User> users; ///< in whose homes they were looked for
  std::optional<sys::User> by;  ///< as whom root has read the store
  bool denied = false;          ///< the store, to root and to all of them
  Diagnoses found;              ///< what is wrong beside the state of each, then SF320
  std::size_t problems = 0;     ///< of `found`, those that keep something from being listed
};
/// Of the store and the homes that sharefs.yaml names; a user other than root sees the own home only. `only`: an
/// environment's name; empty: all.
Result<CondaListing> read_conda_listing(Context& context, const std::string& only);

} // namespace sharefs::cli
