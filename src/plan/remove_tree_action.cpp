// RemoveTree. In a child.
#include "plan/perform.hpp"

#include "base/path.hpp"

#include <cerrno>
#include <linux/openat2.h>
#include <sys/syscall.h>

namespace sharefs::plan {

namespace {

/// A directory below `parent` on the same mount: not a link, and nothing that is mounted there, be it of the same file
/// system (a bind mount has the same device number).
sys::Fd open_below(int parent, const char* name) {
  open_how how{};
  how.flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  how.resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH;
  return sys::Fd(static_cast<int>(::syscall(SYS_openat2, parent, name, &how, sizeof how)));
}

Error open_error(int error, const std::string& path) {
  if (error == EXDEV)
    return {ErrorCode::busy, path + ": something is mounted there, and it is left", "unmount it first", ""};
  return errno_error(error, path);
}

/// Removes everything in the directory `fd`, but not itself.
Result<void> empty(const sys::Fd& fd, const std::string& path) {
  std::vector<std::string> names;
  if (const int error = sys::list_names(sys::Fd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0)), names); error != 0)
    return fail(errno_error(error, path));
  for (const std::string& name : names) {
    if (::unlinkat(fd.get(), name.c_str(), 0) == 0 || errno == ENOENT)
      continue;
    if (errno != EISDIR)
      return fail(errno_error(errno, join_path(path, name)));
    const auto below = open_below(fd.get(), name.c_str());
    if (!below && errno == ENOENT)
      continue;
    if (!below)
      return fail(open_error(errno, join_path(path, name)));
    if (auto emptied = empty(below, join_path(path, name)); !emptied)
      return emptied;
    if (::unlinkat(fd.get(), name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT)
      return fail(errno_error(errno, join_path(path, name)));
  }
  return {};
}

} // namespace

Result<Outcome> act(RemoveTree& action, const Ground& ground, Phase phase) {
  const auto found = ground.find(action.path, true);
  if (!found)
    return fail(found.error());
  if (!found->exists())
    return Outcome::unchanged;
  if (!found->is_directory())
    return conflict(action.path, "a directory", found->text());
  const auto tree = open_below(found->directory.get(), found->name.c_str());
  struct stat status{};
  if (!tree || ::fstat(tree.get(), &status) != 0)
    return fail(open_error(errno, action.path));
  if (status.st_ino != action.inode || status.st_dev != action.device)
    return conflict(action.path, "the directory that the plan was made for", "another one");
  if (phase == Phase::look)
    return Outcome::done;
  if (auto emptied = empty(tree, action.path); !emptied)
    return fail(emptied.error());
  // A directory that was exchanged meanwhile is not empty, or nothing is lost with it.
  if (::unlinkat(found->directory.get(), found->name.c_str(), AT_REMOVEDIR) != 0)
    return fail(errno_error(errno, action.path));
  return synced(*found, action.path);
}

} // namespace sharefs::plan
