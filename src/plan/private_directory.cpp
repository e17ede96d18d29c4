#include "plan/private_directory.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "sys/fs/walk.hpp"
#include "sys/process/child.hpp"

#include <cerrno>
#include <cstdio>
#include <sys/stat.h>

namespace sharefs::plan {

namespace {

constexpr std::size_t k_file_limit = 256U << 20U;
constexpr int k_directory_flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

Result<void> sync_file(int fd, const std::string& path) {
  if (::fsync(fd) != 0 && errno != EINVAL)
    return fail(errno_error(errno, path));
  return {};
}

} // namespace

Result<std::optional<PrivateDirectory>> PrivateDirectory::check_opened(sys::Fd fd, const std::string& path) {
  if (!fd && errno == ENOENT)
    return std::nullopt;
  if (!fd && (errno == ELOOP || errno == ENOTDIR))
    return fail(ErrorCode::permission, path + ": is not a directory, and state is kept only in a real one",
                "remove what is there");
  struct stat status{};
  if (!fd || ::fstat(fd.get(), &status) != 0)
    return fail(errno_error(errno, path));
  if (status.st_uid != ::geteuid())
    return fail(ErrorCode::permission,
                path + ": belongs to another user (uid " + std::to_string(status.st_uid) + "), and is not used",
                ::geteuid() == 0 ? "look at what is in it, then run `chown root " + path + "`"
                                 : "remove it, or set XDG_STATE_HOME to a directory of your own");
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return fail(ErrorCode::failed,
                path + ": others may write there (mode " + format_mode(status.st_mode & 07777U) + ")",
                "look at what is in it, then run `chmod 0700 " + path + "`");
  return PrivateDirectory(std::move(fd), path);
}

Result<std::optional<PrivateDirectory>> PrivateDirectory::open(const sys::Files& files, const std::string& path) {
  TRY_ASSIGN(const auto walked, sys::walk_from(files.root(), path, {.links = sys::Links::trusted}));
  if (!walked.exists())
    return std::nullopt;
  // Hints name commands for a shell, which runs outside of the root.
  return check_opened(sys::Fd(::openat(walked.directory.get(), walked.name.c_str(), k_directory_flags)),
                      files.real_path(path));
}

Result<PrivateDirectory> PrivateDirectory::make(const sys::Files& files, const std::string& path) {
  auto opened = open(files, path);
  if (opened && !*opened) {
    TRY(files.make_directories(path, 0700));
    opened = open(files, path);
  }
  return require_opened(std::move(opened), path);
}

Result<PrivateDirectory> PrivateDirectory::require_opened(Result<std::optional<PrivateDirectory>> opened,
                                                          const std::string& path) {
  TRY(opened);
  if (!*opened)
    return fail(ErrorCode::failed, path + ": removed by somebody else meanwhile");
  return std::move(**opened);
}

Result<std::optional<PrivateDirectory>> PrivateDirectory::open_below(const std::string& name) const {
  return check_opened(sys::Fd(::openat(m_fd.get(), name.c_str(), k_directory_flags)), join_path(m_path, name));
}

Result<PrivateDirectory> PrivateDirectory::make_below(const std::string& name) const {
  if (::mkdirat(m_fd.get(), name.c_str(), 0700) != 0 && errno != EEXIST)
    return fail(errno_error(errno, join_path(m_path, name)));
  return require_opened(open_below(name), join_path(m_path, name));
}

Result<std::vector<std::string>> PrivateDirectory::names() const {
  std::vector<std::string> names;
  if (const int error = sys::list_names(sys::Fd(::openat(m_fd.get(), ".", k_directory_flags)), names); error != 0)
    return fail(errno_error(error, m_path));
  return names;
}

Result<sys::Fd> PrivateDirectory::open_file(const std::string& name, int flags) const {
  const auto path = join_path(m_path, name);
  sys::Fd file(::openat(m_fd.get(), name.c_str(), flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
  struct stat status{};
  if (!file || ::fstat(file.get(), &status) != 0)
    return fail(errno_error(errno, path));
  if (!S_ISREG(status.st_mode) || status.st_uid != ::geteuid())
    return fail(ErrorCode::permission, path + ": is not a file of yours");
  return file;
}

Result<std::string> PrivateDirectory::read(const std::string& name) const {
  TRY_ASSIGN(const auto file, open_file(name, O_RDONLY));
  std::string content;
  if (const int error = sys::read_all(file.get(), content, k_file_limit + 1); error != 0)
    return fail(errno_error(error, join_path(m_path, name)));
  if (content.size() > k_file_limit)
    return fail(ErrorCode::failed, join_path(m_path, name) + ": is larger than " + format_bytes(k_file_limit));
  return content;
}

Result<void> PrivateDirectory::create(const std::string& name, const std::string& content) const {
  TRY_ASSIGN(const auto file, open_file(name, O_WRONLY | O_CREAT | O_EXCL));
  if (!sys::write_all(file.get(), content))
    return fail(errno_error(errno, join_path(m_path, name)));
  TRY(sync_file(file.get(), join_path(m_path, name)));
  return sync();
}

Result<void> PrivateDirectory::append(const std::string& name, const std::string& line) const {
  const auto path = join_path(m_path, name);
  TRY_ASSIGN(const auto file, open_file(name, O_RDWR | O_APPEND));
  const auto size = ::lseek(file.get(), 0, SEEK_END);
  char last = '\n';
  if (size < 0 || (size > 0 && ::pread(file.get(), &last, 1, size - 1) != 1))
    return fail(errno_error(errno, path));
  // All of it is one write, because the groups of a plan append to this file at the same time.
  if (!sys::write_all(file.get(), (last == '\n' ? "" : "\n") + line + "\n"))
    return fail(errno_error(errno, path));
  return sync_file(file.get(), path);
}

Result<std::uint64_t> PrivateDirectory::total_size(const std::string& name) const {
  TRY_ASSIGN(const auto directory, open_below(name));
  TRY_ASSIGN(const auto names, directory ? directory->names() : Result<std::vector<std::string>>());
  std::uint64_t size = 0;
  for (const auto& file : names)
    if (struct stat status{}; ::fstatat(directory->m_fd.get(), file.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0)
      size += static_cast<std::uint64_t>(status.st_size);
  return size;
}

Result<void> PrivateDirectory::rename(const std::string& from, const std::string& to) const {
  if (::renameat2(m_fd.get(), from.c_str(), m_fd.get(), to.c_str(), RENAME_NOREPLACE) != 0) {
    const bool exists = errno == EEXIST;
    auto error = errno_error(errno, join_path(m_path, to));
    error.code = exists ? ErrorCode::conflict : error.code;
    return fail(std::move(error));
  }
  return sync();
}

Result<void> PrivateDirectory::remove(const std::string& name) const {
  TRY_ASSIGN(const auto directory, open_below(name));
  TRY_ASSIGN(const auto names, directory ? directory->names() : Result<std::vector<std::string>>());
  for (const auto& file : names)
    if (::unlinkat(directory->m_fd.get(), file.c_str(), 0) != 0)
      return fail(errno_error(errno, join_path(directory->m_path, file)));
  if (directory && ::unlinkat(m_fd.get(), name.c_str(), AT_REMOVEDIR) != 0)
    return fail(errno_error(errno, join_path(m_path, name)));
  return {};
}

Result<void> PrivateDirectory::sync() const {
  return sync_file(m_fd.get(), m_path);
}

} // namespace sharefs::plan
