// The writing half of Files. At any time, also after a crash, there is either the complete old file or the complete new
// one.
#include "base/path.hpp"
#include "base/try.hpp"
#include "sys/fs/exclusive.hpp"
#include "sys/fs/extended_attributes.hpp"
#include "sys/fs/files.hpp"
#include "sys/process/call.hpp"
#include "sys/process/child.hpp"

#include <cerrno>
#include <cstdio>
#include <sys/stat.h>
#include <sys/xattr.h>

namespace sharefs::sys {
namespace {

constexpr int k_max_temporary_names = 100;
constexpr std::size_t k_longest_name = 255;

/// A new file next to the one that it will replace; the destructor removes it unless it was renamed. Its name is
/// `.NAME.sharefs-PID`: because of the leading dot, exportfs, systemd and run-parts do not read a leftover.
class TemporaryFile {
 public:
  explicit TemporaryFile(const Walked& location) {
    const std::string ending = ".sharefs-" + std::to_string(::getpid());
    const std::string stem = "." + location.name.substr(0, k_longest_name - ending.size() - 5) + ending;
    m_file.directory.reset(::openat(location.directory.get(), ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
    // A name can be taken by another thread, or by a killed process that had the same id.
    for (int n = 0; n < k_max_temporary_names; ++n) {
      m_file.name = n == 0 ? stem : stem + "." + std::to_string(n);
      m_file.fd = create_file(m_file.directory.get(), m_file.name, 0600);
      if (m_file.fd || errno != EEXIST)
        break;
    }
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    const int error_number = errno; // the caller still needs errno of its own error
    if (m_file.fd && !m_renamed)
      ::unlinkat(m_file.directory.get(), m_file.name.c_str(), 0);
    errno = error_number;
  }
  [[nodiscard]] int fd() const { return m_file.fd.get(); }

  /// Renames the file. `exclusive`: EEXIST if the name exists by now. Returns 0 or errno.
  int rename_to(const Walked& location, bool exclusive) {
    int error = ::fstat(fd(), &m_file.status) == 0 ? 0 : errno;
    if (error == 0 && exclusive)
      error = rename_exclusively(m_file, location);
    else if (error == 0 && ::renameat(m_file.directory.get(), m_file.name.c_str(), location.directory.get(),
                                      location.name.c_str()) != 0)
      error = errno;
    m_renamed = error == 0;
    return error;
  }

 private:
  Walked m_file;
  bool m_renamed = false;
};

/// True for attributes with the kernel's checksums of the content, which would be wrong for a new content.
bool is_bound_to_content(std::string_view name) {
  return name == "security.ima" || name == "security.evm";
}

/// Copies the extended attributes, including ACLs. Returns 0 or errno.
int copy_attributes(int from, int to) {
  const auto attributes =
      read_extended_attributes(from, [](std::string_view name) { return !is_bound_to_content(name); });
  if (!attributes)
    return attributes.error();
  bool has_acl = false;
  for (const auto& [name, value] : *attributes) {
    has_acl = has_acl || name == k_acl_attribute;
    // All other attributes are labels, whose copy needs privileges: their errors are ignored.
    const bool ours = name.starts_with("user.") || name == k_acl_attribute;
    if (::fsetxattr(to, name.c_str(), value.data(), value.size(), 0) != 0 && ours)
      return errno;
  }
  // The new file may have an ACL from the directory's default ACL, which the old file does not have.
  if (!has_acl)
    ::fremovexattr(to, k_acl_attribute);
  return 0;
}

/// Gives the new file owner, attributes and mode of the old one, or `mode` if there is no old file. The mode is set
/// last, because chown clears the set-id bits. Returns 0 or errno.
int copy_metadata(int old_file, int new_file, mode_t mode) {
  struct stat before{};
  if (old_file >= 0) {
    struct stat created{};
    if (::fstat(old_file, &before) != 0 || ::fstat(new_file, &created) != 0)
      return errno;
    const bool same_owner = before.st_uid == created.st_uid && before.st_gid == created.st_gid;
    if (!same_owner && ::fchown(new_file, before.st_uid, before.st_gid) != 0)
      return errno;
    if (const int error = copy_attributes(old_file, new_file); error != 0)
      return error;
    mode = before.st_mode & 07777;
  }
  return ::fchmod(new_file, mode) == 0 ? 0 : errno;
}

/// Opens the file that will be replaced. O_NONBLOCK is set because opening a FIFO would wait for its writer.
Fd open_old(const Walked& location) {
  return Fd(::openat(location.directory.get(), location.name.c_str(),
                     O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC));
}

/// True if the content of the open file is exactly this.
bool holds(int fd, const std::string& content) {
  std::string found;
  return read_all(fd, found, content.size() + 1) == 0 && found == content;
}

/// Checks that the content is `before`, or, with nullopt, that there is no file; else `conflict`.
Result<void> check_unchanged(const Walked& location, const std::string& path,
                             const std::optional<std::string>& before) {
  const Fd current = open_old(location);
  if (!current && errno != ENOENT)
    return fail(errno_error(errno, path));
  if (current && before ? holds(current.get(), *before) : !current && !before)
    return {};
  return fail(ErrorCode::conflict, path + ": was changed by somebody else in the meantime", "run the command again");
}

Result<void> replace(const Walked& location, const std::string& path, std::string_view content, mode_t mode,
                     const std::optional<std::string>& before) {
  const Fd old_file = open_old(location);
  if (!old_file && errno != ENOENT)
    return fail(errno_error(errno, path));
  struct stat info{};
  if (old_file && (::fstat(old_file.get(), &info) != 0 || !S_ISREG(info.st_mode)))
    return fail(ErrorCode::failed, path + (S_ISDIR(info.st_mode) ? ": is a directory" : ": is not a regular file"));
  TRY(check_unchanged(location, path, before));

  TemporaryFile file(location);
  if (file.fd() < 0 || !write_all(file.fd(), content))
    return fail(errno_error(errno, path));
  if (const int error = copy_metadata(old_file.get(), file.fd(), mode); error != 0)
    return fail(errno_error(error, path));
  if (::fsync(file.fd()) != 0)
    return fail(errno_error(errno, path));
  TRY(check_unchanged(location, path, before));
  if (const int error = file.rename_to(location, !before); error != 0)
    return error == EEXIST ? check_unchanged(location, path, before) : fail(errno_error(error, path));
  return sync_directory(location.directory.get(), path);
}

constexpr std::chrono::seconds k_write_deadline{30}; ///< for a path that may hang

} // namespace

Result<void> sync_directory(int directory, const std::string& path) {
  const Fd readable(::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!readable)
    return {}; // the directory is writable but not readable for this user, and cannot be synced
  if (::fsync(readable.get()) != 0 && errno != EINVAL && errno != EROFS)
    return fail(errno_error(errno, path));
  return {};
}

Result<void> Files::at(const std::string& path, WalkRule rule,
                       const std::function<Result<void>(const Walked&)>& work) const {
  rule.links = Links::trusted;
  bool hangs = root_may_hang();
  const auto go = [&]() -> Result<void> {
    const Fd root = open_root();
    const auto found = walk(root.get(), path, rule);
    if (!found) {
      hangs = found.error().may_hang;
      return fail(found.error().error());
    }
    if (found->parent_missing)
      return fail(errno_error(found->not_directory ? ENOTDIR : ENOENT, path));
    return work(*found);
  };
  if (!hangs) {
    TRY_ASSIGN(const auto table, mounts());
    const auto stop_at = hanging_in(table);
    rule.stop_at = &stop_at;
    auto done = go();
    rule.stop_at = nullptr;
    if (!hangs)
      return done;
  }
  auto done = call(std::nullopt, k_write_deadline, go);
  if (!done && done.error().code == ErrorCode::timeout)
    return fail(ErrorCode::timeout, path + ": " + done.error().message,
                "run `sharefs status`: it says which mount hangs");
  return done;
}

Result<void> Files::write_if(const std::string& path, const std::optional<std::string>& before,
                             std::string_view content, mode_t mode) const {
  return at(path, {.follow_last = true},
            [&](const Walked& location) { return replace(location, path, content, mode, before); });
}

Result<void> Files::remove(const std::string& path) const {
  return at(path, {}, [&](const Walked& location) -> Result<void> {
    if (::unlinkat(location.directory.get(), location.name.c_str(), 0) != 0)
      return fail(errno_error(errno, path));
    return sync_directory(location.directory.get(), path);
  });
}

Result<void> Files::replace_notes(const std::string& directory, const std::string& made,
                                  const std::vector<std::string>& gone) const {
  return at(directory, {.follow_last = true}, [&](const Walked& found) -> Result<void> {
    if (!found.is_directory())
      return fail(errno_error(found.exists() ? ENOTDIR : ENOENT, directory));
    if (!make_note(found.fd.get(), made))
      return fail(errno_error(errno, join_path(directory, made)));
    for (const auto& name : gone)
      ::unlinkat(found.fd.get(), name.c_str(), 0);
    return {};
  });
}

Result<void> Files::make_directories(const std::string& path, mode_t mode) const {
  for (const auto& part : paths_below("/", normalize_path(path)))
    TRY(at(part, {.follow_last = true}, [&](const Walked& location) -> Result<void> {
      const int parent = location.directory.get();
      if (location.exists())
        return location.is_directory() ? Result<void>() : fail(errno_error(ENOTDIR, part));
      if (const auto made = make_directory(parent, location.name, mode); !made)
        return made.error() == EEXIST ? Result<void>() : fail(errno_error(made.error(), part));
      return sync_directory(parent, part);
    }));
  return {};
}

} // namespace sharefs::sys
