#pragma once
// Tests whether file locks work: on some file systems flock(2) succeeds for every caller.
#include "base/result.hpp"
#include "sys/process/user.hpp"

#include <chrono>
#include <optional>
#include <string>

namespace sharefs::sys {

/// Locks a new file in `directory` by flock(2) on one descriptor and tries to lock it on a second one. True if the
/// second is refused. The file is removed afterwards. For local disks only, because there is no deadline.
Result<bool> locks_exclude(const std::string& directory);

/// A test in which one host locks a file and another host tries to lock it.
struct LockTrial {
  std::string path;
  std::chrono::milliseconds hold{0};  ///< > 0: make the file, lock it, hold the lock for this time, delete the file
  std::chrono::milliseconds after{0}; ///< otherwise: wait for this time, then try to lock it
};
enum class LockAnswer {
  held,    ///< the file was made, locked and deleted
  refused, ///< the other host holds the lock, as expected
  taken,   ///< the file could be locked although the other host holds the lock
  missing, ///< the file is not visible
};
const char* to_string(LockAnswer answer);
/// Runs one side of the test in a child, as `as`, by flock(2), which the NFS client turns into a lock on the server.
/// Takes at most the two times and 5 s (`timeout`).
Result<LockAnswer> try_lock(const LockTrial& trial, const std::optional<User>& as);

} // namespace sharefs::sys
