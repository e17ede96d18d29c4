#include "sys/process/exit_deadline.hpp"

#include <csignal>
#include <sys/time.h>
#include <unistd.h>

namespace sharefs::sys {

namespace {

// The signal handler uses only these two; they are set before the timer starts.
std::string g_text;
int g_last_code = 0;

extern "C" void print_and_exit(int /*SIGALRM*/) {
  [[maybe_unused]] const auto written = ::write(STDOUT_FILENO, g_text.data(), g_text.size());
  ::_exit(g_last_code);
}

void set_timer(std::chrono::milliseconds span) {
  itimerval timer{};
  timer.it_value.tv_sec = span.count() / 1000;
  timer.it_value.tv_usec = span.count() % 1000 * 1000;
  ::setitimer(ITIMER_REAL, &timer, nullptr);
}

} // namespace

ExitDeadline::ExitDeadline(std::chrono::milliseconds deadline, std::string text, int code) {
  g_text = std::move(text);
  g_last_code = code;
  struct sigaction action{};
  action.sa_handler = print_and_exit;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGALRM, &action, nullptr);
  set_timer(deadline);
}

ExitDeadline::~ExitDeadline() {
  set_timer(std::chrono::milliseconds(0));
}

} // namespace sharefs::sys
