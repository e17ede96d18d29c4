// MakeDirectory, RemoveDirectory and Rename. In a child.
#include "plan/perform.hpp"

#include <cerrno>
#include <cstdio>

namespace sharefs::plan {

Result<Outcome> act(MakeDirectory& action, const Ground& ground, Phase phase) {
  const auto found = look(ground, action.path);
  if (!found)
    return fail(found.error());
  if (found->is_directory())
    return Outcome::unchanged;
  if (found->exists)
    return conflict(action.path, "nothing or a directory", found->text());
  if (phase == Phase::look)
    return Outcome::done;
  const auto place = ground.place(action.path);
  if (!place)
    return fail(place.error());
  const int parent = place->directory.get();
  if (::mkdirat(parent, place->name.c_str(), action.mode & 01777U) != 0)
    return errno == EEXIST ? act(action, ground, Phase::look) : fail(errno_error(errno, action.path));
  // mkdir(2) leaves the set-id bits out, and a default ACL of the parent may narrow the rest. What the new directory
  // inherited (the set-group-id bit) stays.
  const sys::Fd made(::openat(parent, place->name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status{};
  if (made && ::fstat(made.get(), &status) == 0) {
    const auto wanted = action.mode | (status.st_mode & S_ISGID);
    if ((status.st_mode & 07777U) != wanted && ::fchmod(made.get(), wanted) != 0)
      return fail(errno_error(errno, action.path));
  }
  if (auto synced = sys::sync_directory(*place, action.path); !synced)
    return fail(synced.error());
  return Outcome::done;
}

Result<Outcome> act(RemoveDirectory& action, const Ground& ground, Phase phase) {
  const auto found = look(ground, action.path);
  if (!found)
    return fail(found.error());
  if (!found->exists)
    return Outcome::unchanged;
  if (!found->is_directory())
    return conflict(action.path, "a directory", found->text());
  if (phase == Phase::look) {
    action.mode = found->status.st_mode & 07777U;
    return Outcome::done;
  }
  const auto place = ground.place(action.path);
  if (!place)
    return fail(place.error());
  if (::unlinkat(place->directory.get(), place->name.c_str(), AT_REMOVEDIR) != 0) {
    if (errno == ENOENT)
      return Outcome::unchanged;
    if (errno == ENOTEMPTY || errno == EEXIST)
      return fail(ErrorCode::busy, action.path + ": the directory is not empty and was left",
                  "move or remove what is in it, then run the command again");
    if (errno == EBUSY)
      return fail(ErrorCode::busy, action.path + ": something is mounted there", "unmount it first");
    return fail(errno_error(errno, action.path));
  }
  if (auto synced = sys::sync_directory(*place, action.path); !synced)
    return fail(synced.error());
  return Outcome::done;
}

Result<Outcome> act(Rename& action, const Ground& ground, Phase phase) {
  const auto from = look(ground, action.from);
  if (!from)
    return fail(from.error());
  const auto to = look(ground, action.to);
  if (!to)
    return fail(to.error());
  if (!from->exists && to->exists)
    return Outcome::unchanged;
  if (!from->exists)
    return conflict(action.from, "something to rename", "nothing");
  if (to->exists)
    return conflict(action.to, "nothing", to->text());
  if (phase == Phase::look)
    return Outcome::done;
  const auto source = ground.place(action.from);
  if (!source)
    return fail(source.error());
  const auto target = ground.place(action.to);
  if (!target)
    return fail(target.error());
  const int error = rename_exclusively(*source, *target);
  if (error == EEXIST)
    return conflict(action.to, "nothing", "something");
  if (error == EXDEV)
    return fail(ErrorCode::unsupported, action.from + ": cannot be renamed to " + action.to + " on another file system",
                "choose a name on the same file system");
  if (error != 0)
    return fail(errno_error(error, action.from));
  for (const auto* place : {&*source, &*target})
    if (auto synced = sys::sync_directory(*place, action.to); !synced)
      return fail(synced.error());
  return Outcome::done;
}

} // namespace sharefs::plan
