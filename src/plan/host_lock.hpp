#pragma once
// A lock, so that only one sharefs at a time changes a host with one state directory.
#include "base/result.hpp"
#include "sys/process/fd.hpp"
#include "sys/system.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace sharefs::plan {

/// Who holds the lock: the content of the lock file, for the messages of other processes.
struct LockHolder {
  std::string command, user;
  int pid = 0;            ///< acquire() fills in this and `since`
  std::int64_t since = 0; ///< seconds since 1970
};

/// A lock file (flock(2) on STATE/lock, a local path) with the command, pid and user of its holder, and the time since
/// when it is held. The destructor releases the lock, and so does the end of the process.
class HostLock {
 public:
  /// Takes the lock, and waits for it up to `wait`. Errors: `busy` with "another sharefs (`sharefs mount --all`, pid
  /// 4711) has been at work since 12:00:03" and a hint about --wait; `interrupted` after a signal. If it has to wait,
  /// it calls `on_wait` once with that text. Locks with different names do not exclude each other.
  static Result<HostLock> acquire(const sys::Files& files, const std::string& state_directory, LockHolder self,
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
