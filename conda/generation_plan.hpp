#pragma once
// Plans to switch to generations and to delete them. Pure: the caller chooses the random names.
#include "conda/environment_store.hpp"
#include "plan/plan.hpp"

namespace sharefs::conda {

/// Plans that STORE/.generations/ENV/`unfinished` becomes generation `number`, whose record was written, and that
/// STORE/ENV leads to it.
plan::Plan plan_switch(const SharedEnvironment& environment, unsigned number, const std::string& unfinished);

/// Plans that STORE/ENV leads to generation `number`; an empty plan if it does. `not_found`: there is no such
/// generation; the hint lists the existing ones.
Result<plan::Plan> plan_rollback(const SharedEnvironment& environment, unsigned number);
/// Returns the generation from which the present one was made; if that is gone, the newest one before it, or of all; 0
/// if there is none.
unsigned previous_generation(const SharedEnvironment& environment);

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

} // namespace sharefs::conda
