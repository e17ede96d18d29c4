#include "sys/process/captured_output.hpp"

#include "sys/process/child.hpp"

#include <cerrno>
#include <sys/mman.h>
#include <unistd.h>

namespace sharefs::sys {

Result<CapturedOutput> CapturedOutput::begin() {
  CapturedOutput captured;
  captured.m_before = Fd(::fcntl(1, F_DUPFD_CLOEXEC, 3));
  captured.m_file = Fd(::memfd_create("output", MFD_CLOEXEC));
  if (!captured.m_before || !captured.m_file || ::dup2(captured.m_file.get(), 1) < 0)
    return fail(errno_error(errno, "standard output"));
  return captured;
}

Result<std::string> CapturedOutput::end(std::size_t limit) {
  if (::dup2(m_before.get(), 1) < 0 || ::lseek(m_file.get(), 0, SEEK_SET) < 0)
    return fail(errno_error(errno, "standard output"));
  std::string text;
  if (const int error = read_all(m_file.get(), text, limit); error != 0)
    return fail(errno_error(error, "standard output"));
  return text;
}

} // namespace sharefs::sys
