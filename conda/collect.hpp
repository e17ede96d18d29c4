#pragma once
// The flow of `conda gc`: finds the generations of an environment that nobody needs any more, and checks before and
// while they are deleted that nobody uses them.
#include "conda/change.hpp"
#include "conda/generation_plan.hpp"
#include "conda/running.hpp"

#include <functional>

namespace sharefs::conda {

struct CollectRequest {
  unsigned keep = 0;                    ///< this number of the last generations is kept
  std::vector<std::string> forgotten;   ///< HOST, USER@HOST or USER@: their notes do not count
  std::vector<RunningProgram> programs; ///< found by root, who sees the programs of all users of this host
  bool only_plans = false;              ///< nothing will be deleted, so collect() does not wait for other hosts
  /// True if this host exports the directory.
  std::function<bool(const std::string& directory)> is_exported;
};

struct Collection {
  plan::Plan plan;
  std::vector<Kept> kept;
};

/// Returns the environment; if there is none, the generations and copies that an interrupted or undone `conda share`
/// has left.
Result<SharedEnvironment> find_collectable(sys::System& system, const std::string& store, const std::string& name);
/// Plans the deletion. Waits until other hosts no longer follow the link to an earlier generation. Errors: `failed`:
/// not all uses are known; `permission`: the generations to delete belong to others; `interrupted`.
Result<Collection> collect(sys::System& system, const SharedEnvironment& environment, const CollectRequest& request,
                           const plan::Say& say);
/// Checks again after the generations have got hidden names, when no new process can begin to use them. `busy`: a
/// process began to use one before that.
Result<void> check_unused(sys::System& system, const SharedEnvironment& now, const CollectRequest& request,
                          const std::vector<Kept>& kept);

} // namespace sharefs::conda
