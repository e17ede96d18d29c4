#include "sys/fs/lock_probe.hpp"

#include "sys/process/fd.hpp"

#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

namespace sharefs::sys {

Result<bool> locks_exclude(const std::string& directory) {
  std::string path = directory + "/.sharefs-lock-XXXXXX";
  const Fd first(::mkostemp(path.data(), O_CLOEXEC));
  if (first.get() < 0)
    return fail(errno_error(errno, directory));
  const Fd second(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  const int opened = errno;
  ::unlink(path.c_str());
  if (second.get() < 0)
    return fail(errno_error(opened, path));
  if (::flock(first.get(), LOCK_EX | LOCK_NB) != 0)
    return false; // ENOLCK, EOPNOTSUPP: a program that locks would fail
  return ::flock(second.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

} // namespace sharefs::sys
