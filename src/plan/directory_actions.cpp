// Directory, Rename and SetImmutable.
#include "plan/perform.hpp"

#include "base/path.hpp"
#include "base/try.hpp"
#include "tree/acl.hpp"

#include <cerrno>
#include <linux/fs.h>
#include <sys/ioctl.h>

namespace sharefs::plan {

namespace {

constexpr std::uint32_t k_closed = 0700; ///< the mode of a new directory until it has its access

Result<Acted> make(const Directory& action, const ActorRoot& base, Phase phase) {
  TRY_ASSIGN(const auto found, base.find(action.path, action.guarded));
  if (found.is_directory()) {
    sys::clear_unfinished_directory(found.directory.get(), found.name); // a killed run may have left one
    return Outcome::unchanged;
  }
  if (found.exists())
    return conflict(action.path, "nothing or a directory", found.text());
  if (auto parent = check_parent(found, action.path); !parent && phase == Phase::perform)
    return fail(parent.error());
  struct stat parent{};
  if (::fstat(found.directory.get(), &parent) != 0)
    return fail(errno_error(errno, action.path));
  if (auto same = check_identity(action.parent, parent, parent_path(action.path)); !same && !found.parent_missing)
    return fail(same.error());
  if (phase == Phase::check)
    return Outcome::done;
  const auto made = sys::make_directory(found.directory.get(), found.name, action.access ? k_closed : *action.after);
  if (!made)
    return made.error() == EEXIST ? make(action, base, Phase::check) : fail(errno_error(made.error(), action.path));
  if (action.access) {
    struct stat status{};
    if (::fstat(made->get(), &status) != 0)
      return fail(errno_error(errno, action.path));
    TRY_ASSIGN(const auto now, tree::read_access(made->get(), status, action.path));
    TRY(tree::set_access(made->get(), now, *action.access, action.path));
  }
  return synced(found, action.path);
}

Result<Acted> remove(const Directory& action, const ActorRoot& base, Phase phase) {
  TRY_ASSIGN(const auto found, base.find(action.path));
  if (!found.exists())
    return Outcome::unchanged;
  if (!found.is_directory())
    return conflict(action.path, "a directory", found.text());
  if (phase == Phase::check) {
    TRY_ASSIGN(auto access, tree::read_access(found.fd.get(), found.status, action.path));
    return Acted{Outcome::done, std::move(access)};
  }
  if (::unlinkat(found.directory.get(), found.name.c_str(), AT_REMOVEDIR) != 0) {
    if (errno == ENOENT)
      return Outcome::unchanged;
    if (errno == ENOTEMPTY || errno == EEXIST)
      return Acted{Outcome::unchanged, {}, not_empty(action.path)};
    if (errno == EBUSY)
      return fail(ErrorCode::busy, action.path + ": something is mounted there", "unmount it first");
    return fail(errno_error(errno, action.path));
  }
  return synced(found, action.path);
}

} // namespace

Result<Acted> act(const Directory& action, const ActorRoot& base, Phase phase) {
  return action.after ? make(action, base, phase) : remove(action, base, phase);
}

/// If somebody else could replace the directory, its flag is checked but not changed.
Result<Acted> act(const SetImmutable& action, const ActorRoot& base, Phase phase) {
  auto found = base.find(action.path, true);
  std::optional<Error> refusal;
  if (!found && found.error().code == ErrorCode::permission) {
    refusal = found.error();
    found = base.find(action.path);
  }
  // Only a directory that nobody else could replace was protected. Something else, or a link of others on the way to
  // it, is not that directory, and there is nothing to take back.
  if (!action.immutable && (found ? !found->is_directory() : found.error().code == ErrorCode::permission))
    return Outcome::unchanged;
  TRY(found);
  if (!found->is_directory())
    return conflict(action.path, "a directory", found->text());
  TRY(check_identity({action.device, action.inode}, found->status, action.path));
  const sys::Fd directory(::openat(found->fd.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  int flags = 0;
  if (!directory)
    return fail(errno_error(errno, action.path));
  if (::ioctl(directory.get(), FS_IOC_GETFLAGS, &flags) != 0)
    return Outcome::unchanged; // NFS, old tmpfs and other file systems do not support the flags
  const int wanted = action.immutable ? flags | FS_IMMUTABLE_FL : flags & ~FS_IMMUTABLE_FL;
  if (flags == wanted)
    return Outcome::unchanged;
  if (refusal && !action.immutable)
    return fail(*refusal);
  if (phase == Phase::check)
    return Outcome::done;
  if (refusal)
    return Acted{Outcome::unchanged, {}, refusal->message + ": it stays writable while nothing is mounted there"};
  if (::ioctl(directory.get(), FS_IOC_SETFLAGS, &wanted) == 0)
    return Outcome::done;
  // EPERM comes from a container without CAP_LINUX_IMMUTABLE. Only setting the flag may fail in silence: a directory
  // that stays protected must be reported.
  if (action.immutable && (errno == EOPNOTSUPP || errno == ENOTTY || errno == EINVAL || errno == EPERM))
    return Outcome::unchanged;
  return fail(errno_error(errno, action.path));
}

Result<Acted> act(const Rename& action, const ActorRoot& base, Phase phase) {
  TRY_ASSIGN(const auto from, base.find(action.from));
  TRY_ASSIGN(const auto to, base.find(action.to));
  if (!from.exists() && to.exists())
    return Outcome::unchanged;
  if (!from.exists())
    return conflict(action.from, "something to rename", "nothing");
  if (to.exists() && !is_second_name(from, to)) // a killed rename may have left a second hard link
    return conflict(action.to, "nothing", to.text());
  if (phase == Phase::check)
    return Outcome::done;
  TRY(check_parent(to, action.to));
  const int error = rename_exclusively(from, to);
  if (error == EEXIST)
    return conflict(action.to, "nothing", "something");
  if (error == ESTALE)
    return conflict(action.from, "what was there before", "something else");
  if (error == EXDEV)
    return fail(ErrorCode::unsupported, action.from + ": cannot be renamed to " + action.to + " on another file system",
                "choose a name on the same file system");
  if (error != 0)
    return fail(errno_error(error, action.from));
  TRY(synced(from, action.from));
  return synced(to, action.to);
}

} // namespace sharefs::plan
