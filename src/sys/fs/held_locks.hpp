#pragma once
// Locks that this host holds while another host tries them.
#include "base/result.hpp"
#include "sys/identity/user.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace sharefs::sys {

class Files;

struct LockRequest {
  std::string directory;
  std::optional<User> as = std::nullopt;    ///< who makes the files and takes the locks
  std::chrono::milliseconds deadline{5000}; ///< to take them, and to let them go
  friend bool operator==(const LockRequest&, const LockRequest&) = default;
};

/// Two files, because a lock of one kind is refused for one of the other kind on the same file of an NFS server.
struct HeldLocks {
  std::string name;      ///< of the files in the directory, with `.flock` and `.posix` behind it
  std::string token;     ///< the line in each: who reads it has the same directory
  std::uint32_t uid = 0; ///< whose they became
  int flock_error = 0;   ///< errno of flock(2) on the first
  int posix_error = 0;   ///< of fcntl(2) on the second
  bool held = true;      ///< false: both were let go
  friend bool operator==(const HeldLocks&, const HeldLocks&) = default;
};

/// Makes the files with names that nobody can guess, locks them exclusively, calls `meanwhile`, lets them go, calls it
/// again, and removes them; also if this process is killed meanwhile. A lock that is not granted is in HeldLocks, not
/// an error. Works in a child, which is killed if it hangs: then the files may stay. Errors: `timeout`, `permission`,
/// and those of making a file.
Result<void> hold_locks(const Files& files, const LockRequest& request,
                        const std::function<void(const HeldLocks&)>& meanwhile);

} // namespace sharefs::sys
