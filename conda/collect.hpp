#pragma once
// The flow of `conda gc`: finds the generations of an environment that nobody needs any more, and checks before and
// while they are deleted that nobody uses them.
#include "conda/change.hpp"
#include "conda/running.hpp"

#include <functional>

namespace sharefs::conda {

/// A generation and the reason why it is kept; an empty reason means that it may be deleted.
struct Kept {
  unsigned number = 0;
  std::string reason; ///< "current", "pinned: ...", "used by process 12 on node1", "one of the last 3", "its record
                      ///< was written by a newer sharefs"
};
/// Returns an element for each generation. `live` holds the uses that keep their generations. Kept are the present
/// generation, pinned ones, those in use, the last `keep`, and those whose record cannot be read.
std::vector<Kept> decide_kept(const SharedEnvironment& environment, const std::vector<Use>& live, unsigned keep);
/// Plans the deletion of the generations that are not kept, and of `unfinished`. `suffix`: six random letters.
plan::Plan plan_collect(const SharedEnvironment& environment, const std::vector<Kept>& kept, const std::string& suffix,
                        const std::vector<sys::Entry>& unfinished);

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
/// Checks again after the generations have got hidden names, when no new process can begin to use them, and no undo can
/// make one of them the present one. `busy`: one of them was needed before that: by a process, by STORE/ENV, or by a
/// file NNNN.pinned.
Result<void> check_unused(sys::System& system, const SharedEnvironment& now, const CollectRequest& request,
                          const std::vector<Kept>& kept);

} // namespace sharefs::conda
