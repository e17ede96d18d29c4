#include "sys/worker/relay.hpp"

#include "base/try.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

namespace sharefs::sys {
namespace {

using namespace std::chrono_literals;
constexpr auto k_drain_time = 200ms; ///< for the data in the pipes of a worker that has ended
constexpr auto k_longest_drain = 2s; ///< the limit if children of the worker continue to write
constexpr int k_most_requests = 3;   ///< the third Ctrl-C or signal kills the worker
constexpr std::size_t k_chunk = 16384;

void unblock(int fd) {
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
}

/// True for a file or FIFO that can only be read, and so may be passed to the worker as it is.
bool is_only_readable(int fd) {
  struct stat status{};
  const int flags = ::fcntl(fd, F_GETFL);
  return flags >= 0 && (flags & O_ACCMODE) == O_RDONLY && (flags & O_PATH) == 0 && ::fstat(fd, &status) == 0 &&
         (S_ISREG(status.st_mode) || S_ISFIFO(status.st_mode));
}

bool is_same_stream(int one, int other) {
  struct stat first{}, second{};
  return ::fstat(one, &first) == 0 && ::fstat(other, &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

/// True if we are in the terminal's foreground. A terminal that does not control our session has no background group.
bool in_foreground(int terminal) {
  const pid_t group = ::tcgetpgrp(terminal);
  return group == ::getpgrp() || (group < 0 && errno == ENOTTY);
}

/// Returns the signals that are passed on to the worker.
sigset_t forwarded_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGCONT}) {
    struct sigaction current{};
    // A signal that is ignored stays ignored: nohup(1) and shells set that on purpose for background jobs.
    if (::sigaction(number, nullptr, &current) == 0 && (current.sa_handler != SIG_IGN || number == SIGCONT))
      sigaddset(&set, number);
  }
  return set;
}

} // namespace

Result<Relay> Relay::open(uid_t user) {
  Relay relay;
  for (const int stream : {0, 1, 2})
    if (::isatty(stream) == 1 && !relay.m_master)
      TRY(relay.open_terminal(user));
  for (const int stream : {0, 1, 2})
    if (::isatty(stream) != 1)
      TRY(relay.open_pipe(stream));
  if (::isatty(0) == 1) {
    relay.m_keyboard = 0;
    relay.m_input.from = 0;
    relay.m_input.to = relay.m_master.get();
  }
  if (const int screen = ::isatty(1) == 1 ? 1 : ::isatty(2) == 1 ? 2 : -1; screen >= 0) {
    relay.m_screen = screen;
    relay.m_outputs.push_back(
        {Fd(::fcntl(relay.m_master.get(), F_DUPFD_CLOEXEC, 3)), relay.m_master.get(), screen, {}});
  }
  return relay;
}

Result<void> Relay::open_terminal(uid_t user) {
  m_master.reset(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!m_master || ::grantpt(m_master.get()) != 0 || ::unlockpt(m_master.get()) != 0)
    return fail(errno_error(errno, "cannot make a terminal"));
  m_slave.reset(::ioctl(m_master.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!m_slave || ::fchown(m_slave.get(), user, static_cast<gid_t>(-1)) != 0)
    return fail(errno_error(errno, "cannot make a terminal"));
  for (const int stream : {0, 1, 2}) {
    termios settings{};
    winsize size{};
    if (::tcgetattr(stream, &settings) != 0)
      continue;
    ::tcsetattr(m_slave.get(), TCSANOW, &settings);
    if (::ioctl(stream, TIOCGWINSZ, &size) == 0)
      ::ioctl(m_slave.get(), TIOCSWINSZ, &size);
    break;
  }
  unblock(m_master.get());
  return {};
}

Result<void> Relay::open_pipe(int stream) {
  auto& end = m_ends.at(static_cast<std::size_t>(stream));
  // The worker gets our own descriptor: input that a relay reads ahead would be lost for the next reader of the file.
  if (stream == 0 && is_only_readable(0)) {
    end.reset(::fcntl(0, F_DUPFD_CLOEXEC, 3));
    return {};
  }
  if (stream == 2 && m_ends[1] && is_same_stream(1, 2)) { // one pipe keeps the order of the lines
    end.reset(::fcntl(m_ends[1].get(), F_DUPFD_CLOEXEC, 3));
    return {};
  }
  Pipe pipe;
  if (!pipe.open())
    return fail(errno_error(errno, "cannot make a pipe"));
  struct stat ours{}, null{};
  if (::fstat(stream, &ours) != 0 || (::stat("/dev/null", &null) == 0 && ours.st_rdev == null.st_rdev &&
                                      S_ISCHR(ours.st_mode) && S_ISCHR(null.st_mode))) {
    end.reset(::open("/dev/null", O_RDWR | O_CLOEXEC));
    return end ? Result<void>{} : fail(errno_error(errno, "/dev/null"));
  }
  auto& kept = stream == 0 ? pipe.write : pipe.read;
  unblock(kept.get());
  end = std::move(stream == 0 ? pipe.read : pipe.write);
  Copy copy;
  copy.from = stream == 0 ? 0 : kept.get();
  copy.to = stream == 0 ? kept.get() : stream;
  copy.own = std::move(kept);
  if (stream == 0)
    m_input = std::move(copy);
  else
    m_outputs.push_back(std::move(copy));
  return {};
}

std::array<int, 3> Relay::ends() const {
  std::array<int, 3> result{};
  for (std::size_t stream = 0; stream < result.size(); ++stream)
    result.at(stream) = m_ends.at(stream) ? m_ends.at(stream).get() : m_slave.get();
  return result;
}

void Relay::resize() const {
  winsize size{};
  if (m_screen >= 0 && ::ioctl(m_screen, TIOCGWINSZ, &size) == 0)
    ::ioctl(m_master.get(), TIOCSWINSZ, &size);
}

/// Passes every key to the worker, including Ctrl-C: the worker's terminal turns keys into signals.
void Relay::enter_raw() {
  termios now{};
  if (m_keyboard < 0 || m_saved_settings || !in_foreground(m_keyboard) || ::tcgetattr(m_keyboard, &now) != 0)
    return;
  m_saved_settings = now;
  ::cfmakeraw(&now);
  ::tcsetattr(m_keyboard, TCSADRAIN, &now);
}

/// Discards unread input, because it may be the terminal's reply to output of the worker, and root's shell would read
/// it as a command.
void Relay::leave_raw() {
  if (!m_saved_settings)
    return;
  if (in_foreground(m_keyboard))
    ::tcsetattr(m_keyboard, TCSAFLUSH, &*m_saved_settings);
  m_saved_settings.reset();
}

void Relay::suspend(Child& worker) {
  ::kill(-worker.pid(), SIGSTOP); // not SIGTSTP, which the kernel ignores for an orphaned process group
  leave_raw();
  ::kill(0, SIGSTOP); // Ctrl-Z stops our whole process group
  enter_raw();
  resize();
  ::kill(-worker.pid(), SIGCONT);
}

void Relay::ask_to_end(Child& worker, int signal) {
  ++m_requests;
  if (m_requests >= k_most_requests)
    worker.kill();
  else if (signal != 0 && ::kill(-worker.pid(), signal) != 0)
    ::kill(worker.pid(), signal);
}

/// Reads keys and checks for two of them: suspend and interrupt. The settings of the worker's terminal define these
/// keys, and whether they cause signals now.
void Relay::read_keys(Child& worker) {
  std::array<char, k_chunk> keys;
  const ssize_t count = ::read(m_keyboard, keys.data(), keys.size());
  if (count < 0 && (errno == EINTR || errno == EAGAIN))
    return;
  if (count <= 0) { // the terminal is gone
    m_input.from = -1;
    ask_to_end(worker, SIGHUP);
    return;
  }
  termios settings{};
  const bool means_signals = ::tcgetattr(m_master.get(), &settings) == 0 && (settings.c_lflag & ISIG) != 0;
  for (const char key : std::string_view(keys.data(), static_cast<std::size_t>(count))) {
    const auto code = static_cast<cc_t>(key);
    if (means_signals && code == settings.c_cc[VSUSP])
      suspend(worker);
    else
      m_input.pending.push_back(key);
    if (means_signals && code == settings.c_cc[VINTR])
      ask_to_end(worker, 0);
  }
}

void Relay::take_signals(int signals, Child& worker) {
  for (signalfd_siginfo info{}; ::read(signals, &info, sizeof info) == sizeof info;) {
    const auto number = static_cast<int>(info.ssi_signo);
    if (number == SIGWINCH)
      resize();
    else if (number == SIGCONT)
      enter_raw();
    else
      ask_to_end(worker, number);
  }
}

/// Copies one chunk. False at the end of the input, or if nobody reads the output any more.
bool Relay::copy(Copy& one) {
  if (one.pending.empty()) {
    std::array<char, k_chunk> buffer;
    const ssize_t count = ::read(one.from, buffer.data(), buffer.size());
    if (count < 0 && (errno == EINTR || errno == EAGAIN))
      return true;
    if (count <= 0) // EIO: no process has the worker's terminal open any more
      return false;
    one.pending.assign(buffer.data(), static_cast<std::size_t>(count));
  }
  const ssize_t written = ::write(one.to, one.pending.data(), one.pending.size());
  if (written < 0)
    return errno == EINTR || errno == EAGAIN;
  one.pending.erase(0, static_cast<std::size_t>(written));
  return true;
}

void Relay::copy_until_end(Child& worker) {
  for (auto& end : m_ends)
    end.reset();
  m_slave.reset();
  const sigset_t wanted = forwarded_signals();
  sigset_t before;
  ::pthread_sigmask(SIG_BLOCK, &wanted, &before);
  const Fd signals(::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
  enter_raw();
  auto drain_end = Deadline::max(), latest_end = drain_end;
  while (!m_outputs.empty() || drain_end == Deadline::max()) {
    const bool ended = drain_end != Deadline::max();
    std::vector<pollfd> fds{{signals.get(), POLLIN, 0}, {ended ? -1 : worker.pidfd(), POLLIN, 0}};
    const bool reads = m_input.from >= 0 && !ended && (m_keyboard < 0 || m_saved_settings);
    fds.push_back({reads && m_input.pending.empty() ? m_input.from : -1, POLLIN, 0});
    fds.push_back({m_input.pending.empty() ? -1 : m_input.to, POLLOUT, 0});
    for (const auto& output : m_outputs)
      fds.push_back({output.from, POLLIN, 0});
    ::poll(fds.data(), fds.size(), poll_time(std::min({drain_end, worker.next_reap(), deadline_in(1h)})));
    take_signals(signals.get(), worker);
    if (!ended && worker.reap()) { // children of the worker may keep the streams open for ever
      drain_end = deadline_in(k_drain_time);
      latest_end = deadline_in(k_longest_drain);
    }
    if (fds[2].revents != 0 && m_keyboard >= 0)
      read_keys(worker);
    if ((fds[3].revents != 0 || (fds[2].revents != 0 && m_keyboard < 0)) && !copy(m_input)) {
      m_input.from = -1;
      m_input.own.reset(); // our input has ended, so the worker's input ends, too
      m_input.pending.clear();
    }
    for (std::size_t i = m_outputs.size(); i-- > 0;)
      if (fds[4 + i].revents != 0 && !copy(m_outputs[i]))
        m_outputs.erase(m_outputs.begin() + static_cast<std::ptrdiff_t>(i));
    const bool quiet =
        std::ranges::all_of(fds.begin() + 4, fds.end(), [](const pollfd& one) { return one.revents == 0; });
    if (Clock::now() >= (quiet ? drain_end : latest_end))
      break;
  }
  leave_raw();
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

} // namespace sharefs::sys
