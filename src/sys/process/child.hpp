#pragma once
// Forked children, never waited for without a deadline, and what comes through their pipes. run_process, in_child and
// the probes stand on it.
#include "base/result.hpp"
#include "sys/process/fd.hpp"
#include "sys/process/user.hpp"

#include <algorithm>
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
/// One that has closed its pipe is about to end; on a machine with much else to do that takes a while.
inline constexpr std::chrono::milliseconds k_end_grace{1000};

/// Now plus `span`; no overflow for a huge one.
Deadline deadline_in(std::chrono::milliseconds span);
/// Milliseconds for poll(2) until `deadline`, rounded up; 0 if it has passed.
int poll_time(Deadline deadline);

/// From here on a write beyond the limit of file sizes (RLIMIT_FSIZE) fails, as on a full disk, and ends no process.
void pass_file_limit();

/// Write all bytes; false on an error (the reader has gone).
bool write_all(int fd, std::string_view bytes);
/// Append to `into` what there is to read, at most `limit` bytes. 0 or errno.
int read_all(int fd, std::string& into, std::size_t limit = std::string::npos);

/// The reading end of a pipe or a socket, never blocking. The first `limit` bytes are kept and the rest is thrown away,
/// so that the writer never waits for room.
class PipeReader {
 public:
  PipeReader() = default;
  PipeReader(Fd fd, std::size_t limit);
  [[nodiscard]] int fd() const { return m_fd.get(); } ///< -1 once the writers have closed their end
  [[nodiscard]] const std::string& bytes() const { return m_bytes; }
  [[nodiscard]] bool is_full() const { return m_bytes.size() == m_limit; }
  void close() { m_fd.reset(); }
  /// Take what is there, some MiB at most. False when there will be no more.
  bool drain();
  void keep_first(std::size_t bytes) { m_bytes.resize(std::min(bytes, m_bytes.size())); }

 private:
  Fd m_fd;
  std::string m_bytes;
  std::size_t m_limit = 0;
};

/// A forked process, mostly the leader of its own process group. Not reaped by the destructor: an abandoned one is
/// init's.
class Child {
 public:
  enum class Group {
    own,
    own_session, ///< it has no terminal either (setsid(2))
    ours,        ///< a terminal's signals reach it, and whoever kills our group kills it
  };
  /// `body` runs in the child with default signals and must not return.
  static Result<Child> fork(const std::function<void()>& body, Group group = Group::own);

  [[nodiscard]] pid_t pid() const { return m_pid; }
  /// Readable when the child has ended; -1 on a kernel without pidfd_open(2): there reap() is called again at
  /// next_reap().
  [[nodiscard]] int pidfd() const { return m_pidfd.get(); }
  [[nodiscard]] Deadline next_reap() const;
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

/// A child that works and writes its results to a socket, by which it may be sent questions. It has no other descriptor
/// of the parent (if it hung, it would keep a pipeline's stdout or a lock open for ever), and its working directory is
/// `/`. One that works as another user has a session of its own, and runs no program of that user's but by
/// run_process(): its memory still holds what was root's, so nobody else may trace it (become()).
class WorkingChild {
 public:
  /// `work` gets the descriptor to write to. That it could not become `as` is reported by finish(). Other threads may
  /// be running: `work` may allocate and throw, as glibc keeps its allocator usable across fork(2) and unwinds without
  /// a lock (since 2.35); it must not take locks of ours.
  /// Once it has written `max_bytes`, its socket is closed.
  static constexpr std::size_t k_max_bytes = 256U << 20U;
  static Result<WorkingChild> start(const std::optional<User>& as, const std::function<void(int fd)>& work,
                                    std::size_t max_bytes = k_max_bytes);

  [[nodiscard]] int fd() const { return m_socket.fd(); } ///< to poll for POLLIN
  /// Take what is there without blocking. False when there will be no more.
  bool drain();
  /// drain() until the child has closed its end (true), or the deadline passed or `given_up`, which is asked many times
  /// a second, says so (false).
  bool drain_until(Deadline deadline, const std::function<bool()>& given_up = nullptr);
  [[nodiscard]] std::string_view result() const; ///< what `work` has written so far
  void forget_result();
  /// Send the first of `bytes` for which there is room, and take them away; never blocks.
  void send(std::string& bytes);
  Child& process() { return m_child; }
  /// After the end or the deadline: reap briefly; kill what does not end. An Error if the child could not become `as`,
  /// crashed, or was killed.
  Result<void> finish();

 private:
  Child m_child;
  PipeReader m_socket; ///< errno of become(), then what `work` writes
};

} // namespace sharefs::sys
