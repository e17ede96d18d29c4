#include "sys/process/progress_counters.hpp"

#include <cerrno>
#include <csignal>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace sharefs::sys {

Result<ProgressCounters> ProgressCounters::make() {
  void* const memory = ::mmap(nullptr, sizeof(Counters), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return fail(errno_error(errno, "cannot share memory with a child process"));
  ProgressCounters made;
  made.m_counters.reset(new (memory) Counters{}, [](Counters* counters) { ::munmap(counters, sizeof *counters); });
  return made;
}

Result<void> end_with(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL); // it must come after setuid(2), which clears this setting
  if (::getppid() != parent)
    return fail(ErrorCode::interrupted, "interrupted");
  return {};
}

} // namespace sharefs::sys
