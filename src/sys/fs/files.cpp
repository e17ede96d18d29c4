#include "sys/fs/files.hpp"

#include "base/path.hpp"
#include "sys/fs/root_directory.hpp"

#include <algorithm>
#include <cerrno>
#include <dirent.h>
#include <memory>
#include <sys/stat.h>

namespace sharefs::sys {
namespace {

FileInfo::Kind file_kind_of(mode_t mode) {
  if (S_ISREG(mode))
    return FileInfo::Kind::regular;
  if (S_ISDIR(mode))
    return FileInfo::Kind::directory;
  if (S_ISLNK(mode))
    return FileInfo::Kind::symlink;
  return FileInfo::Kind::other;
}

FileInfo info_from(const struct stat& info) {
  return {file_kind_of(info.st_mode), info.st_mode & 07777, info.st_uid, info.st_gid,
          static_cast<std::uint64_t>(info.st_size)};
}

bool is_absence(int error_number) {
  return error_number == ENOENT || error_number == ENOTDIR;
}

} // namespace

Files::Files(std::string root) : m_root(normalize_path(root)) {}

Result<std::string> Files::read(const std::string& path, std::size_t limit) const {
  const Fd fd = RootDirectory(m_root).open(path, k_read_flags);
  if (!fd)
    return fail(errno_error(errno, path));
  return read_regular(fd.get(), path, limit);
}

Result<Files::Opened> Files::read_with_info(const std::string& path, std::size_t limit) const {
  const Fd fd = RootDirectory(m_root).open(path, k_read_flags);
  struct stat info{};
  if (!fd || ::fstat(fd.get(), &info) != 0)
    return fail(errno_error(errno, path));
  auto content = read_regular(fd.get(), path, limit);
  if (!content)
    return fail(content.error());
  return Opened{std::move(*content), info_from(info)};
}

Result<std::optional<std::string>> Files::read_if_exists(const std::string& path, std::size_t limit) const {
  const Fd fd = RootDirectory(m_root).open(path, k_read_flags);
  if (!fd && is_absence(errno))
    return std::nullopt;
  if (!fd)
    return fail(errno_error(errno, path));
  auto content = read_regular(fd.get(), path, limit);
  if (!content)
    return fail(content.error());
  return std::move(*content);
}

Result<std::optional<FileInfo>> Files::info(const std::string& path) const {
  const Fd fd = RootDirectory(m_root).open(path, O_PATH | O_NOFOLLOW);
  if (!fd && is_absence(errno))
    return std::nullopt;
  struct stat info{};
  if (!fd || ::fstat(fd.get(), &info) != 0)
    return fail(errno_error(errno, path));
  return info_from(info);
}

Result<std::vector<std::string>> Files::list(const std::string& path) const {
  Fd fd = RootDirectory(m_root).open(path, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
  if (!fd)
    return fail(errno_error(errno, path));
  const auto close_directory = [](DIR* directory) { ::closedir(directory); };
  const std::unique_ptr<DIR, decltype(close_directory)> directory(::fdopendir(fd.get()), close_directory);
  if (!directory)
    return fail(errno_error(errno, path));
  [[maybe_unused]] const int owned_by_directory = fd.release();
  std::vector<std::string> names;
  for (errno = 0; const dirent* entry = ::readdir(directory.get()); errno = 0)
    if (const std::string name = entry->d_name; name != "." && name != "..")
      names.push_back(name);
  if (errno != 0)
    return fail(errno_error(errno, path));
  std::sort(names.begin(), names.end());
  return names;
}

} // namespace sharefs::sys
