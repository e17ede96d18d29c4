// Link.
#include "plan/perform.hpp"

#include "base/try.hpp"

#include <cerrno>
#include <cstdio>

namespace sharefs::plan {

namespace {

bool is_link_to(const sys::Walked& found, const std::optional<std::string>& target) {
  return target ? found.is_link() && found.link == *target : !found.exists();
}

/// Makes the new link under another name, and renames it over the old one.
Result<Outcome> replace(const Link& action, const sys::Walked& found, const std::string& temporary) {
  const int directory = found.directory.get();
  if (::symlinkat(action.after->c_str(), directory, temporary.c_str()) != 0)
    return fail(errno_error(errno, action.path));
  if (::renameat(directory, temporary.c_str(), directory, found.name.c_str()) != 0) {
    const int error = errno;
    ::unlinkat(directory, temporary.c_str(), 0);
    return fail(errno_error(error, action.path));
  }
  return synced(found, action.path);
}

} // namespace

Result<Acted> act(const Link& action, const ActorRoot& base, Phase phase) {
  TRY_ASSIGN(const auto found, base.find(action.path));
  const bool already = is_link_to(found, action.after);
  if (!already && !is_link_to(found, action.before))
    return conflict(action.path, action.before ? "a link to `" + *action.before + "`" : "nothing", found.text());
  TRY(check_identity(already ? sys::FileIdentity{} : action.identity, found.status, action.path));
  const int directory = found.directory.get();
  struct stat status{};
  if (action.checked && action.after && !already && ::fstatat(directory, action.after->c_str(), &status, 0) != 0)
    return fail(errno == ENOENT
                    ? Error{ErrorCode::conflict, *action.after + " is gone, so the link stays as it is", "", ""}
                    : errno_error(errno, *action.after));
  // A process that was killed between symlink and rename leaves the new link under its temporary name.
  const auto temporary = temporary_name(found.name, "link");
  const bool leftover =
      action.before && action.after && ::fstatat(directory, temporary.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
  if (phase == Phase::check)
    return already && !leftover ? Outcome::unchanged : Outcome::done;
  if (leftover && ::unlinkat(directory, temporary.c_str(), 0) != 0)
    return fail(errno_error(errno, action.path));
  if (already)
    return Outcome::unchanged;
  if (action.before && action.after)
    return replace(action, found, temporary);
  TRY(check_parent(found, action.path));
  if (!action.after && ::unlinkat(directory, found.name.c_str(), 0) != 0)
    return fail(errno_error(errno, action.path));
  if (action.after && ::symlinkat(action.after->c_str(), directory, found.name.c_str()) != 0)
    return errno == EEXIST ? act(action, base, Phase::check) : fail(errno_error(errno, action.path));
  return synced(found, action.path);
}

} // namespace sharefs::plan
