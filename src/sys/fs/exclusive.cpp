#include "sys/fs/exclusive.hpp"

#include "base/random.hpp"
#include "sys/fs/entry.hpp"
#include "sys/identity/identity.hpp"

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

/// True if only root and this user can rename entries of the directory. With an ACL, the group's bits are its mask, so
/// they cover the ACL as well.
bool is_guarded(const struct stat& directory) {
  const bool ours = directory.st_uid == 0 || directory.st_uid == ::geteuid();
  return ours && ((directory.st_mode & (S_IWGRP | S_IWOTH)) == 0 || (directory.st_mode & S_ISVTX) != 0);
}

/// Sets the mode of a new directory: mkdir(2) ignores the set-id bits, and a default ACL of the parent may remove
/// others. An inherited set-group-id bit stays. Returns 0 or errno.
int set_mode(int directory, mode_t mode) {
  struct stat status{};
  if (::fstat(directory, &status) != 0)
    return errno;
  const auto wanted = mode | (status.st_mode & S_ISGID);
  return (status.st_mode & 07777U) == wanted || ::fchmod(directory, wanted) == 0 ? 0 : errno;
}

/// Returns the name of the temporary directory in which make_aside() makes the directory `name`.
std::string name_aside(const std::string& name) {
  return temporary_name(name, "directory");
}

/// Makes the new directory in `aside`, which only this user can enter. ESTALE: somebody has replaced one of them.
tl::expected<Fd, int> make_in(const Fd& aside, const std::string& name) {
  struct stat above{}, status{};
  if (!aside || ::fstat(aside.get(), &above) != 0 || (above.st_mode & (S_IRWXU | S_IRWXG | S_IRWXO)) != S_IRWXU)
    return tl::make_unexpected(ESTALE);
  if (::mkdirat(aside.get(), name.c_str(), S_IRWXU) != 0)
    return tl::make_unexpected(ESTALE);
  auto made = open_own_directory(aside.get(), name);
  // Both must have the same owner, whatever uid the server gives us: otherwise somebody has moved another directory
  // there.
  if (made && ::fstat(made.get(), &status) == 0 && status.st_uid == above.st_uid)
    return made;
  ::unlinkat(aside.get(), name.c_str(), AT_REMOVEDIR);
  return tl::make_unexpected(ESTALE);
}

/// Makes the directory in a temporary directory beside it, then moves it to its name.
tl::expected<Fd, int> make_aside(int parent, const std::string& name, mode_t mode) {
  constexpr int k_most_tries = 8;
  clear_unfinished_directory(parent, name);
  for (int tries = 0; tries < k_most_tries; ++tries) {
    // The first name is always the same, so that it is cleared after SIGKILL; the others are random, in case somebody
    // has taken the first.
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
      // Moving a directory to another parent requires write permission on the directory itself.
      error = set_mode(made->get(), mode | S_IRWXU);
      from.fd.reset(::openat(made->get(), ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
      if (error == 0 && (!from.fd || ::fstat(from.fd.get(), &from.status) != 0))
        error = errno;
      if (error == 0)
        error = rename_exclusively(from, to);
      if (error == 0 && (mode & S_IRWXU) != S_IRWXU)
        error = set_mode(made->get(), mode);
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

/// Makes a hard link, which never replaces a file. On NFS an answer can get lost, and the repeated call returns EEXIST:
/// then the link counts as made if the name leads to our file. Returns 0 or errno.
int link_exclusively(const Walked& from, const Walked& to) {
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
  // NFS does not support RENAME_NOREPLACE. Instead a file gets a hard link, which is exclusive everywhere, and then
  // loses its first name.
  struct stat status{};
  const int error = linked ? 0 : from.is_directory() ? EISDIR : link_exclusively(from, to);
  if (error == 0) {
    if (::fstatat(source, from.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
      return errno;
    if (!is_same(from.status, status))
      return ESTALE; // somebody has put another file there
    return ::unlinkat(source, from.name.c_str(), 0) == 0 ? 0 : errno;
  }
  // A directory, or a file on a file system without hard links, is renamed after a check. Between the two calls
  // somebody may make the name: rename(2) then replaces that entry, for a directory only if it is an empty directory.
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
    (void)::fcntl(fd.get(), F_SETFL, flags & O_NONBLOCK); // clears O_DIRECT, so that writes use the page cache
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
  const int error = made ? set_mode(made.get(), mode) : errno;
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
