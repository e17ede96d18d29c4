#include "sys/fs/root_directory.hpp"

#include <array>
#include <cerrno>
#include <cstdint>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <utility>

namespace sharefs::sys {
namespace {

constexpr int k_max_links = 40; // as the kernel's MAXSYMLINKS

int open_in(int root, const std::string& path, int flags) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags) | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT;
  long fd = -1;
  // EAGAIN: a rename elsewhere raced with a ".." of the path.
  for (int attempt = 0; attempt < 16; ++attempt) {
    fd = ::syscall(SYS_openat2, root, path.c_str(), &how, sizeof how);
    if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
      break;
  }
  return static_cast<int>(fd);
}

/// False before kernel 5.6, and in containers whose seccomp filter does not know the call.
bool has_openat2(int root) {
  static const bool works = static_cast<bool>(Fd(open_in(root, "/", O_PATH)));
  return works;
}

/// "/a/b/" -> {"/a/", "b"}: split only, never normalized, because ".." after a link is not what it looks like.
std::pair<std::string, std::string> split_last(std::string path) {
  while (path.size() > 1 && path.back() == '/')
    path.pop_back();
  const auto slash = path.rfind('/');
  if (slash == std::string::npos)
    return {"/", path};
  return {path.substr(0, slash + 1), path.substr(slash + 1)};
}

std::string read_link(const Location& location) {
  std::array<char, 4096> buffer{};
  const ssize_t size = ::readlinkat(location.directory.get(), location.name.c_str(), buffer.data(), buffer.size());
  return size < 0 ? std::string() : std::string(buffer.data(), static_cast<std::size_t>(size));
}

} // namespace

RootDirectory::RootDirectory(const std::string& root)
    : m_live(root == "/"), m_root(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)) {}

Fd RootDirectory::open(const std::string& path, int flags) const {
  if (!m_root)
    return Fd();
  if (has_openat2(m_root.get()))
    return Fd(open_in(m_root.get(), path, flags));
  if (m_live)
    return Fd(::open(path.c_str(), flags | O_CLOEXEC));
  errno = ENOSYS; // rather nothing than a link that leads out of the root
  return Fd();
}

Result<Location> locate(const RootDirectory& root, const std::string& path, bool follow) {
  std::string current = path;
  for (int links = 0; links <= k_max_links; ++links) {
    auto [parent, name] = split_last(current);
    if (name.empty() || name == "/" || name == "." || name == "..")
      return fail(ErrorCode::failed, path + ": is a directory");
    Location location{root.open(parent, O_PATH | O_DIRECTORY), name};
    if (!location.directory)
      return fail(errno_error(errno, path));
    const std::string target = follow ? read_link(location) : std::string();
    if (target.empty())
      return location;
    current = target[0] == '/' ? target : parent + target;
  }
  return fail(errno_error(ELOOP, path));
}

Result<std::string> read_regular(int fd, const std::string& path, std::size_t limit) {
  struct stat info{};
  if (::fstat(fd, &info) != 0)
    return fail(errno_error(errno, path));
  if (S_ISDIR(info.st_mode))
    return fail(ErrorCode::failed, path + ": is a directory");
  if (!S_ISREG(info.st_mode))
    return fail(ErrorCode::failed, path + ": is not a regular file");
  std::string content;
  std::array<char, 65536> buffer{};
  for (;;) {
    const ssize_t count = ::read(fd, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return fail(errno_error(errno, path));
    if (count == 0)
      return content;
    content.append(buffer.data(), static_cast<std::size_t>(count));
    if (content.size() > limit)
      return fail(ErrorCode::failed, path + ": is larger than " + std::to_string(limit) + " bytes");
  }
}

Result<void> sync_directory(const Location& location, const std::string& path) {
  const Fd directory(::openat(location.directory.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory)
    return {}; // writable but not readable for us: nothing that could be done better
  if (::fsync(directory.get()) != 0 && errno != EINVAL && errno != EROFS)
    return fail(errno_error(errno, path));
  return {};
}

} // namespace sharefs::sys
