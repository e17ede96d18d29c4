#include "sys/process/wakeups.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace sharefs::sys {

Result<Wakeups> Wakeups::make(const std::vector<int>& signals) {
  sigset_t mask;
  sigemptyset(&mask);
  for (const int number : signals)
    sigaddset(&mask, number);
  Wakeups wakeups;
  wakeups.m_signals.reset(::signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK));
  // A separate open file is needed: the kernel reports each change once to each open file (fs/proc_namespace.c,
  // mounts_poll).
  wakeups.m_mounts.reset(::open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC));
  if (!wakeups.m_signals || !wakeups.m_mounts || ::pthread_sigmask(SIG_BLOCK, &mask, nullptr) != 0)
    return fail(errno_error(errno, "cannot wait for signals and mounts"));
  return wakeups;
}

Wakeups::Woken Wakeups::wait(Deadline until) {
  std::array<pollfd, 2> fds{{{m_signals.get(), POLLIN, 0}, {m_mounts.get(), POLLPRI, 0}}};
  ::poll(fds.data(), fds.size(), poll_time(until));
  Woken woken;
  for (signalfd_siginfo info{}; ::read(m_signals.get(), &info, sizeof info) == sizeof info;)
    woken.signals.insert(static_cast<int>(info.ssi_signo));
  woken.mounts = (fds[1].revents & (POLLPRI | POLLERR)) != 0;
  return woken;
}

} // namespace sharefs::sys
