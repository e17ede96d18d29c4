#pragma once
#include <fcntl.h>

namespace sharefs::sys {

/// A closed descriptor 0, 1 or 2 would be the number of the next file that is opened, and messages would go into the
/// host's lock or the journal. Reading here ends at once and writing fails, as on a closed one; a command that we
/// become finds it closed. False: not even that can be opened.
inline bool occupy_standard_descriptors() {
  for (int fd = 0; fd < 3; ++fd)
    if (::fcntl(fd, F_GETFD) < 0 && ::open("/dev/null", O_RDONLY | O_CLOEXEC) != fd)
      return false;
  return true;
}

} // namespace sharefs::sys
