#pragma once
// What is done with generations, as plans. Pure: names of unfinished ones are the caller's.
#include "conda/environment_store.hpp"
#include "plan/plan.hpp"

namespace sharefs::conda {

/// STORE/.generations/ENV/`unfinished` becomes generation `number`, whose record is written, and what users see.
plan::Plan plan_switch(const SharedEnvironment& environment, unsigned number, const std::string& unfinished);

/// Users see generation `number`. `usage`: it is the present one; `not_found`: there is none, with those that there
/// are.
Result<plan::Plan> plan_rollback(const SharedEnvironment& environment, unsigned number);
/// That the present generation was made from; if it is gone the newest one before it, or of all; 0: there is none.
unsigned previous_generation(const SharedEnvironment& environment);

/// Why a generation is kept; empty: it may go.
struct Kept {
  unsigned number = 0;
  std::string reason; ///< "current", "pinned: ...", "used by process 12 on node1", "one of the last 3", "its record
                      ///< was written by a newer sharefs"
};
/// One for each generation. `live`: the uses that are not known to have ended. The present one, pinned ones, those in
/// use, the last `keep`, and those whose record is not understood.
std::vector<Kept> kept_generations(const SharedEnvironment& environment, const std::vector<Use>& live, unsigned keep);
/// Deletes the others, what is unfinished, and the uses that have ended. `suffix`: six random letters.
plan::Plan plan_collect(const SharedEnvironment& environment, const std::vector<Kept>& kept, const std::string& suffix,
                        const std::vector<sys::Entry>& unfinished);

} // namespace sharefs::conda
