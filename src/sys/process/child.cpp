#include "sys/process/child.hpp"

#include "base/text.hpp"
#include "base/try.hpp"
#include "sys/process/become.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace sharefs::sys {
namespace {

using namespace std::chrono_literals;
constexpr std::chrono::milliseconds k_ask_interval = 25ms; ///< between two calls of `given_up`
/// The capacity of a pipe. Buffers of this size are not initialised, which would cost more than the read.
constexpr std::size_t k_buffer = 65536;

/// Sets all signals to their default action: the parent's handlers must not run in the child, and the child must not
/// inherit ignored signals.
void reset_signals() {
  struct sigaction standard{};
  standard.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number)
    if (number != SIGKILL && number != SIGSTOP)
      ::sigaction(number, &standard, nullptr);
  report_file_limit_as_error();
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

std::atomic<bool> g_child_signal_was_ignored{false};

/// Stops ignoring SIGCHLD, which our parent may have set: the kernel would discard the exit codes of our children.
void keep_exit_codes() {
  struct sigaction current{};
  if (::sigaction(SIGCHLD, nullptr, &current) != 0 || (current.sa_flags & SA_SIGINFO) != 0)
    return;
  if (current.sa_handler != SIG_IGN)
    return;
  g_child_signal_was_ignored = true;
  current.sa_handler = SIG_DFL;
  ::sigaction(SIGCHLD, &current, nullptr);
}

/// Closes all descriptors but the socket, and opens /dev/null as 0, 1 and 2. Returns the new number of the socket, or
/// -1.
int keep_only(int socket) {
  constexpr int k_place = 3;
  if (socket != k_place && ::dup2(socket, k_place) < 0)
    return -1;
  ::fcntl(k_place, F_SETFD, FD_CLOEXEC);
  ::closefrom(k_place + 1);
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; fd < 3; ++fd) {
    if (null >= 0)
      ::dup2(null, fd);
    else
      ::close(fd);
  }
  if (null > 2)
    ::close(null);
  return k_place;
}

} // namespace

Result<void> end_with(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL); // it must come after setuid(2), which clears this setting
  if (::getppid() != parent)
    return fail(ErrorCode::interrupted, "interrupted");
  return {};
}

void report_file_limit_as_error() {
  // A handler is used instead of SIG_IGN, because execve(2) resets it for the next program. If the signal was ignored
  // before, it stays ignored.
  if (::signal(SIGXFSZ, [](int) {}) == SIG_IGN)
    ::signal(SIGXFSZ, SIG_IGN);
}

void hand_on_child_signal() {
  if (g_child_signal_was_ignored)
    ::signal(SIGCHLD, SIG_IGN);
}

Deadline deadline_in(std::chrono::milliseconds span) {
  return Clock::now() + std::clamp<std::chrono::milliseconds>(span, 0ms, 24h * 365);
}

int poll_time(Deadline deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
  return static_cast<int>(std::clamp<std::chrono::milliseconds>(left, 0ms, 1h).count());
}

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

int read_all(int fd, std::string& into, std::size_t limit) {
  std::array<char, k_buffer> buffer;
  while (limit > 0) {
    const ssize_t count = ::read(fd, buffer.data(), std::min(buffer.size(), limit));
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return count == 0 ? 0 : errno;
    if (into.size() + static_cast<std::size_t>(count) > into.capacity())
      into.reserve(4 * into.capacity() + buffer.size()); // memory that is never written to costs nothing, a copy does
    into.append(buffer.data(), static_cast<std::size_t>(count));
    limit -= static_cast<std::size_t>(count);
  }
  return 0;
}

PipeReader::PipeReader(Fd fd, std::size_t limit) : m_fd(std::move(fd)), m_limit(limit) {
  ::fcntl(m_fd.get(), F_SETFL, O_NONBLOCK);
}

bool PipeReader::drain() {
  std::array<char, k_buffer> buffer;
  // The number of rounds is limited, so that the caller can check its deadline while a child writes without end.
  for (int round = 0; m_fd && round < 64; ++round) {
    const ssize_t count = ::read(m_fd.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0 && errno == EAGAIN)
      return true;
    if (count <= 0)
      m_fd.reset();
    else
      m_bytes.append(buffer.data(), std::min(static_cast<std::size_t>(count), m_limit - m_bytes.size()));
  }
  return static_cast<bool>(m_fd);
}

Result<Child> Child::fork(const std::function<void()>& body, Group group) {
  keep_exit_codes();
  Child child;
  // A signal between fork and reset_signals() would run the parent's handler in the child.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  child.m_pid = ::fork();
  const int error = errno;
  if (child.m_pid == 0) {
    if ((group == Group::own_session && ::setsid() < 0) || (group == Group::own && ::setpgid(0, 0) < 0))
      ::_exit(126);
    reset_signals();
    try {
      body();
    } catch (...) { // NOLINT(bugprone-empty-catch): the child must not continue in the parent's stack frames
    }
    ::_exit(126);
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (child.m_pid < 0)
    return fail(errno_error(error, "cannot start a process"));
  if (group == Group::own)
    ::setpgid(child.m_pid, child.m_pid); // parent and child both call it, so that kill() always finds the group
  child.m_pidfd.reset(static_cast<int>(::syscall(SYS_pidfd_open, child.m_pid, 0)));
  return child;
}

bool Child::reap() {
  if (m_reaped)
    return true;
  int status = 0;
  pid_t ended = 0;
  do
    ended = ::waitpid(m_pid, &status, WNOHANG);
  while (ended < 0 && errno == EINTR);
  if (ended == 0)
    return false;
  m_reaped = true;
  if (ended == m_pid)
    m_exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return true;
}

Deadline Child::next_reap() const {
  return m_pidfd ? Deadline::max() : Clock::now() + 2ms;
}

bool Child::reap_until(Deadline deadline) {
  while (!reap()) {
    if (Clock::now() >= deadline)
      return false;
    pollfd end{pidfd(), POLLIN, 0};
    ::poll(&end, 1, poll_time(std::min(deadline, next_reap())));
  }
  return true;
}

void Child::kill() {
  if (m_reaped || m_pid <= 0)
    return; // another process may have this id by now
  m_killed = true;
  if (::kill(-m_pid, SIGKILL) != 0)
    ::kill(m_pid, SIGKILL);
}

bool Child::kill_and_reap() {
  kill();
  return reap_until(deadline_in(k_reap_grace));
}

Result<WorkingChild> WorkingChild::start(const std::optional<User>& as, const std::function<void(int)>& work,
                                         std::size_t max_bytes) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return fail(errno_error(errno, "cannot make a socket"));
  Fd ours(ends[0]);
  const Fd theirs(ends[1]);
  const auto body = [&] {
    const int fd = keep_only(theirs.get());
    if (fd < 0 || ::chdir("/") != 0)
      ::_exit(126);
    const int refused = as ? become(*as) : 0;
    if (!write_all(fd, {reinterpret_cast<const char*>(&refused), sizeof refused}) || refused != 0)
      ::_exit(126);
    try {
      work(fd);
    } catch (...) {
      ::_exit(125);
    }
    ::_exit(0);
  };
  WorkingChild result;
  TRY_ASSIGN(result.m_child, Child::fork(body, as ? Child::Group::own_session : Child::Group::own));
  result.m_socket = PipeReader(std::move(ours), max_bytes);
  return result;
}

bool WorkingChild::drain() {
  m_socket.drain();
  if (m_socket.is_full())
    m_socket.close();
  return fd() >= 0;
}

bool WorkingChild::drain_until(Deadline deadline, const std::function<bool()>& given_up) {
  while (drain()) {
    if (Clock::now() >= deadline || (given_up && given_up()))
      return false;
    pollfd more{fd(), POLLIN, 0};
    ::poll(&more, 1, poll_time(given_up ? std::min(deadline, deadline_in(k_ask_interval)) : deadline));
  }
  return true;
}

std::string_view WorkingChild::result() const {
  std::string_view bytes = m_socket.bytes();
  bytes.remove_prefix(std::min(bytes.size(), sizeof(int)));
  return bytes;
}

void WorkingChild::forget_result() {
  m_socket.keep_first(sizeof(int));
}

void WorkingChild::send(std::string& bytes) {
  // An error is ignored here: drain() notices that the child has ended.
  if (const auto sent = ::send(fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT); sent > 0)
    bytes.erase(0, static_cast<std::size_t>(sent));
}

Result<void> WorkingChild::finish() {
  m_socket.close();
  const auto grace = m_child.was_killed() ? k_reap_grace : k_end_grace;
  if (!m_child.reap_until(deadline_in(grace)) && !m_child.was_killed())
    m_child.kill_and_reap();
  int refused = 0;
  if (m_socket.bytes().size() >= sizeof refused)
    std::memcpy(&refused, m_socket.bytes().data(), sizeof refused);
  if (refused != 0)
    return fail(errno_error(refused, "cannot act as another user", "run sharefs as root"));
  if (m_socket.is_full()) // its code says only that nobody read the rest
    return fail(ErrorCode::failed, "the child process has answered more than " + format_bytes(m_socket.bytes().size()));
  const int code = m_child.exit_code();
  if (code > 128)
    return fail(ErrorCode::failed, "the child process was ended by signal " + std::to_string(code - 128));
  if (code > 0)
    return fail(ErrorCode::failed, "the child process ended with code " + std::to_string(code));
  return {};
}

} // namespace sharefs::sys
