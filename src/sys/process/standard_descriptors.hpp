#pragma once
#include <fcntl.h>

namespace sharefs::sys {

/// Opens /dev/null on each closed descriptor of 0, 1 and 2. The next file that is opened would get such a number
/// otherwise, and messages would be written into the host's lock file or the journal. As on a closed descriptor,
/// reading ends at once and writing fails; a command that replaces this process finds the descriptor closed. False:
/// /dev/null cannot be opened.
inline bool occupy_standard_descriptors() {
  for (int fd = 0; fd < 3; ++fd)
    if (::fcntl(fd, F_GETFD) < 0 && ::open("/dev/null", O_RDONLY | O_CLOEXEC) != fd)
      return false;
  return true;
}

} // namespace sharefs::sys
