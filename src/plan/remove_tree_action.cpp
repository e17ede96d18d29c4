// RemoveTree. In a child.
#include "plan/perform.hpp"

#include "base/path.hpp"
#include "plan/tree_walk.hpp"

#include <cerrno>

namespace sharefs::plan {

namespace {

Error open_error(int error, const std::string& path) {
  if (error == EXDEV)
    return {ErrorCode::busy, path + ": something is mounted there, and it is left", "unmount it first", ""};
  return errno_error(error, path);
}

/// Removes everything in the directory `fd`, but not itself.
Result<void> empty(sys::Fd fd, const std::string& path) {
  return for_each_name(std::move(fd), path, [&path](int here, const dirent& entry) -> Result<void> {
    const std::string name = entry.d_name;
    if (entry.d_type != DT_DIR) { // or not known: unlink(2) tells
      if (::unlinkat(here, name.c_str(), 0) == 0 || errno == ENOENT)
        return {};
      if (errno != EISDIR)
        return fail(errno_error(errno, join_path(path, name)));
    }
    auto below = open_below(here, name.c_str());
    if (!below && errno == ENOENT)
      return {};
    if (!below)
      return fail(open_error(errno, join_path(path, name)));
    if (auto emptied = empty(std::move(below), join_path(path, name)); !emptied)
      return emptied;
    if (::unlinkat(here, name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT)
      return fail(errno_error(errno, join_path(path, name)));
    return {};
  });
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
  auto tree = open_below(found->directory.get(), found->name.c_str());
  struct stat status{};
  if (!tree || ::fstat(tree.get(), &status) != 0)
    return fail(open_error(errno, action.path));
  if (status.st_ino != action.inode || status.st_dev != action.device)
    return conflict(action.path, "the directory that the plan was made for", "another one");
  if (phase == Phase::look)
    return Outcome::done;
  if (auto emptied = empty(std::move(tree), action.path); !emptied)
    return fail(emptied.error());
  // A directory that was exchanged meanwhile is not empty, or nothing is lost with it.
  if (::unlinkat(found->directory.get(), found->name.c_str(), AT_REMOVEDIR) != 0)
    return fail(errno_error(errno, action.path));
  return synced(*found, action.path);
}

} // namespace sharefs::plan
