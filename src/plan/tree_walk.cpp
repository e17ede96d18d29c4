#include "plan/tree_walk.hpp"

#include "sys/fs/walk.hpp"

#include <cerrno>
#include <linux/openat2.h>
#include <sys/syscall.h>

namespace sharefs::plan {

sys::Fd open_below(int parent, const char* name, int flags) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags | O_NOFOLLOW | O_CLOEXEC);
  how.resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH;
  return sys::Fd(static_cast<int>(::syscall(SYS_openat2, parent, name, &how, sizeof how)));
}

Result<void> for_each_name(sys::Fd directory, const std::string& path, const Visit& visit) {
  Result<void> visited;
  const int error = sys::for_each_name(std::move(directory), [&](int here, const dirent& entry) {
    visited = visit(here, entry);
    return visited ? 0 : ECANCELED;
  });
  return !visited || error == 0 ? visited : fail(errno_error(error, path));
}

} // namespace sharefs::plan
