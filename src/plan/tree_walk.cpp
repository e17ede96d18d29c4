#include "plan/tree_walk.hpp"

#include <cerrno>
#include <linux/openat2.h>
#include <memory>
#include <sys/syscall.h>

namespace sharefs::plan {

namespace {

struct CloseTreeDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

} // namespace

sys::Fd open_below(int parent, const char* name, int flags) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags | O_NOFOLLOW | O_CLOEXEC);
  how.resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH;
  return sys::Fd(static_cast<int>(::syscall(SYS_openat2, parent, name, &how, sizeof how)));
}

Result<void> for_each_name(sys::Fd fd, const std::string& path, const Visit& visit) {
  const std::unique_ptr<DIR, CloseTreeDirectory> directory(::fdopendir(fd.get()));
  if (!directory)
    return fail(errno_error(errno, path));
  [[maybe_unused]] const int owned_by_directory = fd.release();
  for (errno = 0; const dirent* entry = ::readdir(directory.get()); errno = 0) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..")
      continue;
    if (auto visited = visit(::dirfd(directory.get()), *entry); !visited)
      return visited;
  }
  return errno == 0 ? Result<void>{} : fail(errno_error(errno, path));
}

} // namespace sharefs::plan
