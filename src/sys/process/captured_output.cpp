#include "sys/process/captured_output.hpp"

#include "sys/process/child.hpp"

#include <cerrno>
#include <sys/mman.h>
#include <unistd.h>

namespace sharefs::sys {

Result<std::string> capture_output(std::size_t limit, const std::function<void()>& work) {
  const auto failed = [](int error) { return fail(errno_error(error, "standard output")); };
  const Fd before(::fcntl(1, F_DUPFD_CLOEXEC, 3)), file(::memfd_create("output", MFD_CLOEXEC));
  if (!before || !file || ::dup2(file.get(), 1) < 0)
    return failed(errno);
  work();
  if (::dup2(before.get(), 1) < 0 || ::lseek(file.get(), 0, SEEK_SET) < 0)
    return failed(errno);
  std::string text;
  const int error = read_all(file.get(), text, limit);
  return error == 0 ? Result<std::string>(std::move(text)) : failed(error);
}

} // namespace sharefs::sys
