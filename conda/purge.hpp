#pragma once
// The flow of `conda purge`: which originals of shared environments can be deleted.
#include "conda/environment_store.hpp"
#include "conda/link.hpp"
#include "plan/say.hpp"

namespace sharefs::conda {

struct PurgeRequest {
  std::string store;
  std::vector<std::string> names; ///< of environments
  std::vector<Homes> homes;
  std::optional<sys::User> as = {}; ///< who reads the store, where root is refused
  bool named = false;               ///< a name without a shared environment is an error
};
struct Purge {
  plan::Plan plan;
  bool incomplete = false; ///< not all that was asked for can be done
};
/// Says what is left, and why. `not_found`; or what the disk says.
Result<Purge> plan_purge(sys::System& system, const PurgeRequest& request, const plan::Say& say);

} // namespace sharefs::conda
