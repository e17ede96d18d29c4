#pragma once
// Forked children, which are never waited for without a deadline, and readers of their pipes. run_process, in_child and
// the probes use them.
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
#include <vector>

namespace sharefs::sys {

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;

/// A child that still exists this long after SIGKILL hangs in the kernel; it is not waited for any longer.
inline constexpr std::chrono::milliseconds k_reap_grace{200};
/// A child that has closed its pipe is about to end. On a busy machine its end may take this long.
inline constexpr std::chrono::milliseconds k_end_grace{1000};

/// Returns now plus `span`. The span is limited to a year, so that the sum cannot overflow.
Deadline deadline_in(std::chrono::milliseconds span);
/// Returns the milliseconds for poll(2) until `deadline`, rounded up; 0 if it has passed.
int poll_time(Deadline deadline);

/// Makes the kernel end this child when its parent ends, because nobody uses its result then. `parent` is the process
/// that forked it. Error `interrupted`: the parent has ended already.
Result<void> end_with(pid_t parent);

/// Returns the words as execve(2) expects them, with a null pointer at the end. The pointers point into `words`.
inline std::vector<char*> exec_words(std::vector<std::string>& words) {
  std::vector<char*> result;
  result.reserve(words.size() + 1);
  for (auto& word : words)
    result.push_back(word.data());
  result.push_back(nullptr);
  return result;
}

/// Makes a write beyond the limit of file sizes (RLIMIT_FSIZE) fail, as on a full disk, instead of ending the process.
void report_file_limit_as_error();

/// Ignores SIGCHLD again if our parent had set that, for a program that takes the place of this process.
void hand_on_child_signal();

/// Writes all bytes. False on an error, for example if the reader has closed its end.
bool write_all(int fd, std::string_view bytes);
/// Reads to the end of the file, or `limit` bytes, and appends them to `into`. Returns 0 or errno.
int read_all(int fd, std::string& into, std::size_t limit = std::string::npos);

/// The reading end of a pipe or a socket, in non-blocking mode. The first `limit` bytes are kept and the rest is
/// discarded, so that the writer never waits for a full pipe.
class PipeReader {
 public:
  PipeReader() = default;
  PipeReader(Fd fd, std::size_t limit);
  [[nodiscard]] int fd() const { return m_fd.get(); } ///< -1 once the writers have closed their end
  [[nodiscard]] const std::string& bytes() const { return m_bytes; }
  [[nodiscard]] bool is_full() const { return m_bytes.size() == m_limit; }
  void close() { m_fd.reset(); }
  /// Reads the bytes that are available, some MiB at most. False once the writers have closed their end.
  bool drain();
  void keep_first(std::size_t bytes) { m_bytes.resize(std::min(bytes, m_bytes.size())); }

 private:
  Fd m_fd;
  std::string m_bytes;
  std::size_t m_limit = 0;
};

/// A forked process, usually the leader of its own process group. The destructor does not reap it: after our end, init
/// reaps an abandoned child.
class Child {
 public:
  enum class Group {
    own,
    own_session, ///< a group of its own, and no controlling terminal (setsid(2))
    ours,        ///< the terminal's signals, and signals to our group, reach the child
  };
  /// `body` runs in the child with default signals and must not return.
  static Result<Child> fork(const std::function<void()>& body, Group group = Group::own);

  [[nodiscard]] pid_t pid() const { return m_pid; }
  /// A descriptor that becomes readable when the child ends. It is -1 on a kernel without pidfd_open(2); the caller
  /// then calls reap() again at next_reap().
  [[nodiscard]] int pidfd() const { return m_pidfd.get(); }
  [[nodiscard]] Deadline next_reap() const;
  /// Reaps the child without blocking. True once it has ended; exit_code() is known then.
  bool reap();
  /// Waits until the child has ended (true) or the deadline has passed (false).
  bool reap_until(Deadline deadline);
  /// Sends SIGKILL to the group, then reaps the child within k_reap_grace. False: the child hangs in the kernel.
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

/// A child that works and writes its results to a socket, by which the parent may also send it questions. It has no
/// other descriptor of the parent, because a child that hangs would keep a pipeline's stdout or a lock open for ever.
/// Its working directory is `/`. A child that works as another user has its own session, and runs programs of that user
/// only by run_process(): its memory still holds root's data, so that user must not trace it (become()).
class WorkingChild {
 public:
  /// Starts a child; `work` gets the descriptor to write to. finish() reports if the child could not become `as`. Other
  /// threads of the parent may be running: `work` may allocate and throw, because glibc keeps its allocator usable
  /// across fork(2) and unwinds without a lock (since 2.35), but it must not take locks of ours. After `max_bytes` of
  /// results the parent closes the socket.
  static constexpr std::size_t k_max_bytes = 256U << 20U;
  static Result<WorkingChild> start(const std::optional<User>& as, const std::function<void(int fd)>& work,
                                    std::size_t max_bytes = k_max_bytes);

  [[nodiscard]] int fd() const { return m_socket.fd(); } ///< to poll for POLLIN
  /// Reads the available results without blocking. False once the child has closed its end.
  bool drain();
  /// Calls drain() until the child has closed its end (true), or until the deadline has passed or `given_up` returns
  /// true (false). `given_up` is called many times a second.
  bool drain_until(Deadline deadline, const std::function<bool()>& given_up = nullptr);
  [[nodiscard]] std::string_view result() const; ///< what `work` has written so far
  void forget_result();
  /// Sends as many of the first `bytes` as the socket has room for, and removes them from `bytes`. Never blocks.
  void send(std::string& bytes);
  Child& process() { return m_child; }
  /// Reaps the child after its end or its deadline, and kills it if it does not end soon. Returns an Error if the child
  /// could not become `as`, crashed, or was killed.
  Result<void> finish();

 private:
  Child m_child;
  PipeReader m_socket; ///< receives the errno of become(), then the output of `work`
};

} // namespace sharefs::sys
