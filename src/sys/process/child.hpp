#pragma once
// A forked child that is never waited for without a deadline. The ground under run_process, in_child and the probes.
#include "base/result.hpp"
#include "sys/identity/user.hpp"
#include "sys/process/fd.hpp"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>

namespace sharefs::sys {

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;

/// A child that SIGKILL has not ended after this time hangs in the kernel, and nobody waits for it any more.
inline constexpr std::chrono::milliseconds k_reap_grace{200};

/// Now plus `span`, without overflow for a huge one.
Deadline deadline_in(std::chrono::milliseconds span);
/// Milliseconds for poll(2) until `deadline`, rounded up, at most `at_most`; 0 if it has passed.
int poll_time(Deadline deadline, std::chrono::milliseconds at_most = std::chrono::hours(1));

/// A forked process, leader of its own process group. Not reaped by the destructor: an abandoned one is init's.
class Child {
 public:
  /// Fork; `body` runs in the child with default signals and must not return. Errno text on failure.
  static Result<Child> fork(const std::function<void()>& body);

  [[nodiscard]] pid_t pid() const { return m_pid; }
  /// Readable when the child has ended; -1 on a kernel without pidfd_open(2).
  [[nodiscard]] int pidfd() const { return m_pidfd.get(); }
  /// True once the child has ended (then `exit_code` is known); never blocks.
  bool reap();
  /// Wait for the end until the deadline.
  bool reap_until(Deadline deadline);
  /// SIGKILL to the group, then reap within k_reap_grace. False: it hangs in the kernel.
  bool kill_and_reap();
  void kill();
  [[nodiscard]] bool was_killed() const { return m_killed; }
  /// 0..255, 128 + n when killed by signal n; -1 while not known.
  [[nodiscard]] int exit_code() const { return m_exit_code; }

 private:
  pid_t m_pid = -1;
  Fd m_pidfd;
  bool m_reaped = false;
  bool m_killed = false;
  int m_exit_code = -1;
};

/// Become `as` in a forked child: groups, gid, uid. 0 or errno. No change needed (and no privilege) if we are that
/// user.
int become(const User& as);

/// A child that works and writes its results to a pipe. It sees no descriptor of the parent (a child that hangs would
/// keep a pipeline's stdout, or a lock, open for ever), and its working directory is `/`.
class WorkingChild {
 public:
  /// `work` gets the descriptor to write to. That it could not become `as` is reported by finish(). Other threads may
  /// be running: `work` may allocate and throw, as glibc keeps its allocator usable across fork(2) and unwinds without
  /// a lock (since 2.35); it must not take locks of ours.
  /// Of what it writes the first `max_bytes` are taken; then its pipe is closed.
  static Result<WorkingChild> start(const std::optional<User>& as, const std::function<void(int fd)>& work,
                                    std::size_t max_bytes = 256U << 20U);

  [[nodiscard]] int fd() const { return m_pipe.get(); } ///< to poll for POLLIN
  /// Take what is there without blocking. False when there will be no more.
  bool drain();
  /// drain() until the child has closed its end (true) or the deadline passed (false).
  bool drain_until(Deadline deadline);
  [[nodiscard]] std::string_view result() const; ///< what `work` has written so far
  Child& process() { return m_child; }
  /// After the end or the deadline: reap briefly; kill what does not end. An Error if the child could not become `as`,
  /// crashed, or was killed.
  Result<void> finish();

 private:
  Child m_child;
  Fd m_pipe;
  std::string m_bytes; ///< errno of become(), then what `work` wrote
  std::size_t m_max_bytes = 0;
};

/// Write all bytes; false on an error (the reader has gone).
bool write_all(int fd, std::string_view bytes);

} // namespace sharefs::sys
