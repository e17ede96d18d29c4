#include "sys/process/progress_counters.hpp"

#include <cerrno>
#include <sys/mman.h>

namespace sharefs::sys {

Result<ProgressCounters> ProgressCounters::make() {
  void* const memory = ::mmap(nullptr, sizeof(Counters), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return fail(errno_error(errno, "cannot share memory with a child process"));
  ProgressCounters made;
  made.m_counters.reset(new (memory) Counters{}, [](Counters* counters) { ::munmap(counters, sizeof *counters); });
  return made;
}

} // namespace sharefs::sys
