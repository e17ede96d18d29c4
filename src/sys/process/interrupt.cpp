#include "sys/process/interrupt.hpp"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <poll.h>
#include <unistd.h>

namespace sharefs::sys {

namespace {

constexpr int k_interrupted_exit = 130;

std::atomic<bool> g_interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free, "the handler may run at any moment");

extern "C" void note_signal(int number) {
  if (g_interrupted.exchange(true) && number == SIGINT)
    ::_exit(k_interrupted_exit); // the second Ctrl-C ends the process at once; the journal has the step that was begun
}

} // namespace

void install_interrupt_handlers() {
  struct sigaction wanted{};
  wanted.sa_handler = note_signal;
  wanted.sa_flags = SA_RESTART;
  sigemptyset(&wanted.sa_mask);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction current{};
    // A signal that is ignored stays ignored: nohup(1) and shells set that on purpose for background jobs.
    if (::sigaction(number, nullptr, &current) == 0 && current.sa_handler != SIG_IGN)
      ::sigaction(number, &wanted, nullptr);
  }
}

bool interrupted() {
  return g_interrupted;
}

DelayInterrupts::DelayInterrupts() : m_before(g_interrupted.exchange(false)) {}

DelayInterrupts::~DelayInterrupts() {
  if (m_before)
    g_interrupted = true;
}

bool wait_for_input(int fd) {
  constexpr int k_poll_time = 200; // milliseconds; a signal that arrives just before poll(2) does not end poll(2)
  pollfd wait{fd, POLLIN, 0};
  while (!interrupted())
    if (const int found = ::poll(&wait, 1, k_poll_time); found > 0 || (found < 0 && errno != EINTR))
      return true;
  return false;
}

bool nobody_reads(int fd) {
  pollfd end{fd, 0, 0};
  return ::poll(&end, 1, 0) > 0 && (end.revents & (POLLERR | POLLHUP)) != 0;
}

} // namespace sharefs::sys
