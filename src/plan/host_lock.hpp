#pragma once
// One changing sharefs per host and state directory.
#include "base/result.hpp"
#include "sys/process/fd.hpp"
#include "sys/system.hpp"

#include <chrono>
#include <functional>
#include <string>

namespace sharefs::plan {

/// Who holds it, for the messages of others.
struct LockHolder {
  std::string command, user;
};

/// A lock file (flock on STATE/lock, a local path) that names its holder: command, pid, user, since when. Released by
/// the destructor or by the death of the process.
class HostLock {
 public:
  /// Waits up to `wait`; then `busy`: "another sharefs (`sharefs mount --all`, pid 4711) has been at work since
  /// 12:00:03" with a hint about --wait. Interruptible (`interrupted`). `on_wait` is called once if it has to wait,
  /// with that text. Another `name` is another lock, of which there may be one beside it.
  static Result<HostLock> acquire(const sys::Files& files, const std::string& state_directory, const LockHolder& self,
                                  std::chrono::milliseconds wait,
                                  const std::function<void(const std::string&)>& on_wait = {},
                                  const std::string& name = "lock");
  HostLock(HostLock&&) = default;
  ~HostLock();

 private:
  explicit HostLock(sys::Fd file) : m_file(std::move(file)) {}
  sys::Fd m_file;
};

} // namespace sharefs::plan
