// MakeLink, RemoveLink and SwapLink. In a child.
#include "plan/perform.hpp"

#include <cerrno>
#include <cstdio>

namespace sharefs::plan {

namespace {

std::string link_to(const std::string& target) {
  return "a link to `" + target + "`";
}

} // namespace

Result<Outcome> act(MakeLink& action, const Ground& ground, Phase phase) {
  const auto found = ground.find(action.path);
  if (!found)
    return fail(found.error());
  if (found->is_link() && found->link == action.target)
    return Outcome::unchanged;
  if (found->exists())
    return conflict(action.path, "nothing", found->text());
  if (phase == Phase::look)
    return Outcome::done;
  if (auto parent = check_parent(*found, action.path); !parent)
    return fail(parent.error());
  if (::symlinkat(action.target.c_str(), found->directory.get(), found->name.c_str()) != 0)
    return errno == EEXIST ? act(action, ground, Phase::look) : fail(errno_error(errno, action.path));
  return synced(*found, action.path);
}

Result<Outcome> act(RemoveLink& action, const Ground& ground, Phase phase) {
  const auto found = ground.find(action.path);
  if (!found)
    return fail(found.error());
  if (!found->exists())
    return Outcome::unchanged;
  if (found->link != action.target || !found->is_link())
    return conflict(action.path, link_to(action.target), found->text());
  if (phase == Phase::look)
    return Outcome::done;
  if (::unlinkat(found->directory.get(), found->name.c_str(), 0) != 0)
    return fail(errno_error(errno, action.path));
  return synced(*found, action.path);
}

Result<Outcome> act(SwapLink& action, const Ground& ground, Phase phase) {
  const auto found = ground.find(action.path);
  if (!found)
    return fail(found.error());
  const bool already = found->is_link() && found->link == action.after;
  if (!already && !(found->is_link() && found->link == action.before))
    return conflict(action.path, link_to(action.before), found->text());
  if (auto same = check_identity(already ? sys::FileIdentity{} : action.identity, found->status, action.path); !same)
    return fail(same.error());
  // A process that was killed between symlink and rename leaves the new link under its temporary name.
  const int directory = found->directory.get();
  const auto temporary = temporary_name(found->name, "link");
  struct stat status{};
  if (action.checked && !already && ::fstatat(directory, action.after.c_str(), &status, 0) != 0)
    return fail(errno == ENOENT
                    ? Error{ErrorCode::conflict, action.after + " is gone, so the link stays as it is", "", ""}
                    : errno_error(errno, action.after));
  const bool leftover = ::fstatat(directory, temporary.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
  if (phase == Phase::look)
    return already && !leftover ? Outcome::unchanged : Outcome::done;
  if (leftover && ::unlinkat(directory, temporary.c_str(), 0) != 0)
    return fail(errno_error(errno, action.path));
  if (already)
    return Outcome::unchanged;
  if (::symlinkat(action.after.c_str(), directory, temporary.c_str()) != 0)
    return fail(errno_error(errno, action.path));
  if (::renameat(directory, temporary.c_str(), directory, found->name.c_str()) != 0) {
    const int error = errno;
    ::unlinkat(directory, temporary.c_str(), 0);
    return fail(errno_error(error, action.path));
  }
  return synced(*found, action.path);
}

} // namespace sharefs::plan
