#pragma once
// Do file locks mean anything here? On some file systems flock(2) succeeds for every caller.
#include "base/result.hpp"
#include "sys/process/user.hpp"

#include <chrono>
#include <optional>
#include <string>

namespace sharefs::sys {

/// Takes flock(2) on a new file in `directory` by one descriptor and tries it by a second: true if the second is
/// refused. The file is gone afterwards. Local disks only: nothing here has a deadline.
Result<bool> locks_exclude(const std::string& directory);

/// A file that one host locks and another one tries.
struct LockTrial {
  std::string path;
  std::chrono::milliseconds hold{0};  ///< > 0: make the file, lock it, keep it so long, delete it
  std::chrono::milliseconds after{0}; ///< otherwise: when to try
};
enum class LockAnswer {
  held,    ///< was made and locked, and is gone again
  refused, ///< another one holds it, as it should be
  taken,   ///< it could be locked beside the other one
  missing, ///< the file is not seen
};
const char* to_string(LockAnswer answer);
/// In a child, as `as`; takes at most the two times and 5 s (`timeout`). flock(2), which the client of NFS makes a lock
/// of the server.
Result<LockAnswer> try_lock(const LockTrial& trial, const std::optional<User>& as);

} // namespace sharefs::sys
