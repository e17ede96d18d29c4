#include "sys/process/pulse.hpp"

#include <cerrno>
#include <csignal>
#include <ctime>
#include <new>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace sharefs::sys {

Result<Pulse> Pulse::make() {
  void* const memory = ::mmap(nullptr, sizeof(Counters), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return fail(errno_error(errno, "cannot share memory with a child process"));
  Pulse pulse;
  pulse.m_counters.reset(new (memory) Counters{}, [](Counters* counters) { ::munmap(counters, sizeof *counters); });
  return pulse;
}

void Pulse::begin() const {
  set(k_counters, static_cast<std::uint64_t>(::getpid()));
}

std::optional<std::chrono::nanoseconds> Pulse::processor_time() const {
  clockid_t clock{};
  timespec used{};
  const auto pid = static_cast<pid_t>(get(k_counters));
  if (pid == 0 || ::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &used) != 0)
    return std::nullopt;
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

Result<void> end_with(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL); // after setuid(2), which takes it back
  if (::getppid() != parent)
    return fail(ErrorCode::interrupted, "interrupted");
  return {};
}

} // namespace sharefs::sys
