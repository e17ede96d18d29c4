#include "plan/journal_files.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "sys/process/child.hpp"

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <sys/stat.h>

namespace sharefs::plan {

namespace {

/// An open directory of the journal, for the *at calls.
Result<sys::Fd> open_directory(const sys::Files& files, const std::string& directory) {
  sys::Fd fd = sys::RootDirectory(files.root()).open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!fd)
    return fail(errno_error(errno, directory));
  return fd;
}

Result<void> sync(int fd, const std::string& path) {
  if (::fsync(fd) != 0 && errno != EINVAL)
    return fail(errno_error(errno, path));
  return {};
}

/// In process: /proc never hangs for one's own or a plain process's `stat`.
std::string read_proc(const std::string& path) {
  const auto text = sys::Files().read(path);
  return text ? *text : std::string();
}

} // namespace

std::string journal_directory(const std::string& state_directory) {
  return join_path(state_directory, "journal");
}

std::string entry_directory(const std::string& state_directory, const std::string& id) {
  return join_path(journal_directory(state_directory), id);
}

Result<void> make_private_directory(const sys::Files& files, const std::string& directory) {
  const auto info = files.info(directory);
  if (!info)
    return fail(info.error());
  if (*info && (*info)->kind == sys::FileInfo::Kind::symlink)
    return fail(ErrorCode::permission, directory + ": is a symbolic link, and state is kept only in a real directory",
                "remove the link, or mount the other place there");
  if (!*info)
    if (auto made = files.make_directories(directory, 0700); !made)
      return made;
  const auto fd = open_directory(files, directory);
  if (!fd)
    return fail(fd.error());
  struct stat status{};
  if (::fstat(fd->get(), &status) != 0)
    return fail(errno_error(errno, directory));
  if (status.st_uid != ::geteuid() && status.st_uid != 0)
    return fail(ErrorCode::permission,
                directory + ": belongs to another user (uid " + std::to_string(status.st_uid) + ")",
                "remove it, or set XDG_STATE_HOME to a directory of your own");
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return fail(ErrorCode::permission,
                directory + ": others may write there (mode " + format_mode(status.st_mode & 07777U) + ")",
                "run `chmod 0700 " + directory + "`");
  return {};
}

Result<void> create_file(const sys::Files& files, const std::string& path, const std::string& content) {
  const auto directory = open_directory(files, parent_path(path));
  if (!directory)
    return fail(directory.error());
  const sys::Fd file(
      ::openat(directory->get(), base_name(path).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file || !sys::write_all(file.get(), content))
    return fail(errno_error(errno, path));
  if (auto synced = sync(file.get(), path); !synced)
    return synced;
  return sync(directory->get(), path);
}

Result<void> append_line(const sys::Files& files, const std::string& path, const std::string& line) {
  const auto directory = open_directory(files, parent_path(path));
  if (!directory)
    return fail(directory.error());
  const sys::Fd file(
      ::openat(directory->get(), base_name(path).c_str(), O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  struct stat status{};
  if (!file || ::fstat(file.get(), &status) != 0)
    return fail(errno_error(errno, path));
  char last = '\n';
  if (status.st_size > 0 && ::pread(file.get(), &last, 1, status.st_size - 1) != 1)
    return fail(errno_error(errno, path));
  // One write(2): the groups of a plan append to this file at the same time.
  if (!sys::write_all(file.get(), (last == '\n' ? "" : "\n") + line + "\n"))
    return fail(errno_error(errno, path));
  return sync(file.get(), path);
}

Result<void> remove_entry(const sys::Files& files, const std::string& directory) {
  const auto names = files.list(directory);
  const auto fd = open_directory(files, parent_path(directory));
  const auto inner = open_directory(files, directory);
  if (!names || !fd || !inner)
    return fail(!names ? names.error() : !fd ? fd.error() : inner.error());
  for (const auto& name : *names)
    if (::unlinkat(inner->get(), name.c_str(), 0) != 0)
      return fail(errno_error(errno, join_path(directory, name)));
  if (::unlinkat(fd->get(), base_name(directory).c_str(), AT_REMOVEDIR) != 0)
    return fail(errno_error(errno, directory));
  return {};
}

Result<void> rename_entry(const sys::Files& files, const std::string& from, const std::string& to) {
  const auto directory = open_directory(files, parent_path(from));
  if (!directory)
    return fail(directory.error());
  const int parent = directory->get();
  if (::renameat2(parent, base_name(from).c_str(), parent, base_name(to).c_str(), RENAME_NOREPLACE) != 0)
    return fail(errno == EEXIST ? Error{ErrorCode::conflict, to + ": exists already", "", ""} : errno_error(errno, to));
  return sync(parent, to);
}

std::uint64_t start_time_of(int pid) {
  if (pid <= 0)
    return 0;
  const auto text = read_proc("/proc/" + std::to_string(pid) + "/stat");
  // The second field is the program's name in parentheses, which may itself hold spaces and parentheses.
  const auto fields = split_words(std::string_view(text).substr(std::min(text.rfind(')') + 1, text.size())));
  constexpr std::size_t k_start_time = 22 - 3; // the first field behind the name is number 3
  std::uint64_t ticks = 0;
  if (fields.size() > k_start_time)
    std::from_chars(fields[k_start_time].data(), fields[k_start_time].data() + fields[k_start_time].size(), ticks);
  return ticks;
}

std::string current_boot_id() {
  return std::string(trim(read_proc("/proc/sys/kernel/random/boot_id")));
}

} // namespace sharefs::plan
