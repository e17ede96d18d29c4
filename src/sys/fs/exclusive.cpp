#include "sys/fs/exclusive.hpp"

#include "base/random.hpp"
#include "sys/fs/entry.hpp"
#include "sys/identity/own_host.hpp"

#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace sharefs::sys {

namespace {

Fd open_own_directory(int parent, const std::string& name) {
  return Fd(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

/// Could nobody but root and us rename what lies in this directory? The bits of the group are those of an ACL, too.
bool is_guarded(const struct stat& directory) {
  const bool ours = directory.st_uid == 0 || directory.st_uid == ::geteuid();
  return ours && ((directory.st_mode & (S_IWGRP | S_IWOTH)) == 0 || (directory.st_mode & S_ISVTX) != 0);
}

/// A directory that was made just now: mkdir(2) leaves the set-id bits out, and a default ACL of the parent may narrow
/// the rest. What it inherited (the set-group-id bit) stays. 0 or errno.
int give_mode(int directory, mode_t mode) {
  struct stat status{};
  if (::fstat(directory, &status) != 0)
    return errno;
  const auto wanted = mode | (status.st_mode & S_ISGID);
  return (status.st_mode & 07777U) == wanted || ::fchmod(directory, wanted) == 0 ? 0 : errno;
}

std::string name_aside(const std::string& name) {
  return temporary_name(name, "directory");
}

/// The new directory, in `aside`, which only we can enter; ESTALE: somebody has put another one there.
tl::expected<Fd, int> make_in(const Fd& aside, const std::string& name) {
  struct stat above{}, status{};
  if (!aside || ::fstat(aside.get(), &above) != 0 || (above.st_mode & (S_IRWXU | S_IRWXG | S_IRWXO)) != S_IRWXU)
    return tl::make_unexpected(ESTALE);
  if (::mkdirat(aside.get(), name.c_str(), S_IRWXU) != 0)
    return tl::make_unexpected(ESTALE);
  auto made = open_own_directory(aside.get(), name);
  // Both are of one owner, as the server of a share knows us: else somebody has renamed a directory of his own there.
  if (made && ::fstat(made.get(), &status) == 0 && status.st_uid == above.st_uid)
    return made;
  ::unlinkat(aside.get(), name.c_str(), AT_REMOVEDIR);
  return tl::make_unexpected(ESTALE);
}

tl::expected<Fd, int> make_aside(int parent, const std::string& name, mode_t mode) {
  constexpr int k_most_tries = 8;
  clear_unfinished_directory(parent, name);
  for (int tries = 0; tries < k_most_tries; ++tries) {
    // The first name is found again after SIGKILL; somebody may have taken it.
    const auto beside = tries == 0 ? name_aside(name) : temporary_name(name, random_letters(8));
    if (::mkdirat(parent, beside.c_str(), S_IRWXU) != 0) {
      if (errno == EEXIST)
        continue;
      return tl::make_unexpected(errno);
    }
    Walked from;
    from.directory = open_own_directory(parent, beside);
    from.name = beside;
    auto made = make_in(from.directory, beside);
    int error = made ? 0 : made.error();
    if (made) {
      Walked to;
      to.directory = open_own_directory(parent, ".");
      to.name = name;
      // A directory that its owner may not write cannot be moved to another one.
      error = give_mode(made->get(), mode | S_IRWXU);
      from.fd.reset(::openat(made->get(), ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
      if (error == 0 && (!from.fd || ::fstat(from.fd.get(), &from.status) != 0))
        error = errno;
      if (error == 0)
        error = rename_exclusively(from, to);
      if (error == 0 && (mode & S_IRWXU) != S_IRWXU)
        error = give_mode(made->get(), mode);
      ::unlinkat(from.directory.get(), beside.c_str(), AT_REMOVEDIR);
    }
    ::unlinkat(parent, beside.c_str(), AT_REMOVEDIR);
    if (error == 0)
      return made;
    if (error != ESTALE && error != ENOENT)
      return tl::make_unexpected(error);
  }
  return tl::make_unexpected(EBUSY);
}

bool is_same(const struct stat& one, const struct stat& other) {
  return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

/// link(2) never replaces. Its answer can get lost on NFS, so that the second one says EEXIST: what has the name tells.
/// 0 or errno.
int give_second_name(const Walked& from, const Walked& to) {
  if (::linkat(from.directory.get(), from.name.c_str(), to.directory.get(), to.name.c_str(), 0) == 0)
    return 0;
  const int error = errno;
  struct stat there{};
  const bool is_ours =
      ::fstatat(to.directory.get(), to.name.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0 && is_same(from.status, there);
  return is_ours ? 0 : error;
}

} // namespace

bool is_second_name(const Walked& one, const Walked& other) {
  return one.exists() && other.exists() && !one.is_directory() && is_same(one.status, other.status);
}

int rename_exclusively(const Walked& from, const Walked& to) {
  const int source = from.directory.get();
  const int target = to.directory.get();
  const bool linked = is_second_name(from, to);
  if (!linked && ::renameat2(source, from.name.c_str(), target, to.name.c_str(), RENAME_NOREPLACE) == 0)
    return 0;
  if (!linked && errno != EINVAL && errno != ENOSYS)
    return errno;
  // NFS has no such rename. A second name of a file is made exclusively everywhere; then the first one goes.
  struct stat status{};
  const int error = linked ? 0 : from.is_directory() ? EISDIR : give_second_name(from, to);
  if (error == 0) {
    if (::fstatat(source, from.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
      return errno;
    if (!is_same(from.status, status))
      return ESTALE; // somebody has put a new file there
    return ::unlinkat(source, from.name.c_str(), 0) == 0 ? 0 : errno;
  }
  // Of a directory, or where files have one name only, the worst is that what is made at this moment is replaced: an
  // empty directory, as rename(2) refuses all else.
  if (error == EEXIST || ::fstatat(target, to.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0)
    return EEXIST;
  return ::renameat(source, from.name.c_str(), target, to.name.c_str()) == 0 ? 0 : errno;
}

bool is_on_nfs(int directory) {
  struct statfs info{};
  return ::fstatfs(directory, &info) == 0 && info.f_type == NFS_SUPER_MAGIC;
}

Fd open_to_make(int directory, const std::string& name, int flags, mode_t mode, bool on_nfs) {
  const int direct = on_nfs ? O_DIRECT : 0;
  Fd fd(::openat(directory, name.c_str(), flags | O_CREAT | O_NOFOLLOW | O_CLOEXEC | direct, mode));
  if (fd && on_nfs)
    (void)::fcntl(fd.get(), F_SETFL, flags & O_NONBLOCK); // whatever is written goes by the page cache
  return fd;
}

Fd create_file(int directory, const std::string& name, mode_t mode, int access) {
  return open_to_make(directory, name, access | O_EXCL, mode, is_on_nfs(directory));
}

bool make_note(int directory, const std::string& name) {
  return ::symlinkat(k_note_text, directory, name.c_str()) == 0 || errno == EEXIST;
}

std::string temporary_name(const std::string& name, const std::string& purpose) {
  const auto ending = ".sharefs-" + purpose + "-" + own_name().substr(0, 64);
  return "." + name.substr(0, NAME_MAX - 1 - ending.size()) + ending;
}

tl::expected<Fd, int> make_directory(int parent, const std::string& name, mode_t mode) {
  struct stat above{};
  if (::fstat(parent, &above) != 0)
    return tl::make_unexpected(errno);
  if (!is_guarded(above))
    return make_aside(parent, name, mode);
  if (::mkdirat(parent, name.c_str(), mode & 01777U) != 0)
    return tl::make_unexpected(errno);
  auto made = open_own_directory(parent, name);
  const int error = made ? give_mode(made.get(), mode) : errno;
  return error == 0 ? tl::expected<Fd, int>(std::move(made)) : tl::make_unexpected(error);
}

void clear_unfinished_directory(int parent, const std::string& name) {
  const auto beside = name_aside(name);
  struct stat status{};
  if (::fstatat(parent, beside.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
    return;
  if (const auto aside = open_own_directory(parent, beside))
    ::unlinkat(aside.get(), beside.c_str(), AT_REMOVEDIR);
  ::unlinkat(parent, beside.c_str(), AT_REMOVEDIR);
}

} // namespace sharefs::sys
