#pragma once
// The flow of `conda gc`: which generations of an environment nobody needs any more, and the checks before and while
// they are deleted.
#include "conda/change.hpp"
#include "conda/generation_plan.hpp"
#include "conda/running.hpp"

#include <functional>

namespace sharefs::conda {

struct CollectRequest {
  unsigned keep = 0;                    ///< so many of the last generations are kept
  std::vector<std::string> forgotten;   ///< HOST, USER@HOST or USER@: notes that do not count
  std::vector<RunningProgram> programs; ///< seen by who may see more of this host
  bool looks_only = false;              ///< nothing is going to be deleted: nobody waits for other hosts
  /// Does this host serve the directory to others?
  std::function<bool(const std::string& directory)> is_exported;
};

struct Collection {
  plan::Plan plan;
  std::vector<Kept> kept;
};

/// The environment, or what a `conda share` that was cut off or taken back has left where there is nothing else.
Result<SharedEnvironment> find_collectable(sys::System& system, const std::string& store, const std::string& name);
/// Waits until no other host follows the link to where it led before. Errors: `failed`: not all uses are known;
/// `permission`: what would be deleted belongs to others; `interrupted`.
Result<Collection> collect(sys::System& system, const SharedEnvironment& environment, const CollectRequest& request,
                           const plan::Say& say);
/// Once they are out of sight nobody begins to use them any more. `busy`: somebody has begun before that.
Result<void> check_unused(sys::System& system, const SharedEnvironment& now, const CollectRequest& request,
                          const std::vector<Kept>& kept);

} // namespace sharefs::conda
