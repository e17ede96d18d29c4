#include "sys/fs/glance.hpp"

#include "base/path.hpp"
#include "base/text.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdint>
#include <sys/syscall.h>

namespace sharefs::sys {
namespace {

// The kernel prints no more lines than a read has room for. This host's own file systems are mounted first, and come
// first.
constexpr std::size_t k_few_lines = 1024;
constexpr int k_most_reads = 16;

// openat2(2); <linux/openat2.h> of older distributions lacks the flag.
struct OpenHow {
  std::uint64_t flags, mode, resolve;
};
constexpr std::uint64_t k_resolve_cached = 0x20;

/// An O_PATH descriptor by the kernel's name cache alone. Without one errno tells: ENOENT is the name cache's word that
/// a name is not there, EAGAIN that it does not know; ENOSYS before 5.6, EINVAL before 5.12.
Fd open_cached(const std::string& path, int flags) {
  const OpenHow how{static_cast<std::uint64_t>(O_PATH | O_CLOEXEC | flags), 0, k_resolve_cached};
  return Fd(static_cast<int>(::syscall(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof how)));
}

/// proc_pid_fdinfo(5): the id of the mount that a descriptor is on. fstatfs(2) and statx(2) would ask its file system.
std::optional<int> mount_id_of(const Fd& fd) {
  constexpr std::string_view k_key = "mnt_id:";
  const Fd info(::open(("/proc/self/fdinfo/" + std::to_string(fd.get())).c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 512> buffer{};
  const ssize_t size = info ? ::read(info.get(), buffer.data(), buffer.size()) : -1;
  if (size <= 0)
    return std::nullopt;
  const std::string_view text(buffer.data(), static_cast<std::size_t>(size));
  const std::size_t key = text.find(k_key);
  const std::size_t value = key == std::string_view::npos ? key : text.find_first_of("0123456789", key);
  int id = 0;
  if (value == std::string_view::npos ||
      std::from_chars(text.data() + value, text.data() + text.size(), id).ec != std::errc())
    return std::nullopt;
  return id;
}

PathKind kind_of(const struct stat& status) {
  return S_ISDIR(status.st_mode) ? PathKind::directory : S_ISREG(status.st_mode) ? PathKind::file : PathKind::other;
}

/// The path that a descriptor was found at: the kernel's own words, no file system is asked.
std::optional<std::string> path_of(const Fd& fd) {
  std::array<char, PATH_MAX> buffer{};
  const ssize_t size = ::readlink(("/proc/self/fd/" + std::to_string(fd.get())).c_str(), buffer.data(), buffer.size());
  std::string path(buffer.data(), size < 0 ? 0 : static_cast<std::size_t>(size));
  const bool whole = path.size() < buffer.size() && path.starts_with('/') && !path.ends_with(" (deleted)");
  return whole ? std::optional<std::string>(std::move(path)) : std::nullopt;
}

} // namespace

Glance Glance::of_this_host() {
  Glance glance;
  glance.m_knows = true;
  glance.m_reads_left = k_most_reads;
  return glance;
}

Glance::Glance(const MountTable& mounts) : m_knows(true) {
  for (const MountEntry& mount : mounts.entries())
    m_mounts.emplace(mount.id, mount);
}

std::optional<Place> Glance::at(std::string_view path) {
  // Behind a link `..` is not what it looks like.
  if (!m_knows || !path.starts_with('/') || path.find('\0') != std::string_view::npos ||
      (std::string(path) + "/").find("/../") != std::string::npos)
    return std::nullopt;
  return look(normalize_path(path));
}

std::optional<Place> Glance::look(const std::string& path) {
  if (const auto known = m_seen.find(path); known != m_seen.end())
    return known->second;
  // Itself first: a link to something that is not there is there, and may lead to a share.
  Fd fd = open_cached(path, O_NOFOLLOW);
  std::optional<Place> place;
  if (fd)
    place = existing(path, std::move(fd));
  else if (errno == ENOENT && path != "/")
    place = missing(path);
  m_seen.emplace(path, place);
  return place;
}

std::optional<Place> Glance::existing(const std::string& path, Fd fd) {
  struct stat status{};
  const MountEntry* mount = look_at(fd, status);
  if (mount != nullptr && S_ISLNK(status.st_mode)) {
    fd = open_cached(path, 0);
    mount = fd ? look_at(fd, status) : nullptr;
  }
  if (mount == nullptr)
    return std::nullopt;
  auto resolved = path_of(fd);
  if (!resolved)
    return std::nullopt;
  return Place{path, *std::move(resolved), false, kind_of(status), mount->target, mount->fs_type, ""};
}

std::optional<Place> Glance::missing(const std::string& path) {
  auto place = look(parent_path(path));
  if (place) {
    place->path = path;
    place->resolved = join_path(place->resolved, base_name(path));
    place->kind = PathKind::missing;
  }
  return place;
}

const MountEntry* Glance::look_at(const Fd& fd, struct stat& status) {
  const MountEntry* mount = mount_of(fd);
  return mount != nullptr && !may_hang(mount->fs_type) && ::fstat(fd.get(), &status) == 0 ? mount : nullptr;
}

const MountEntry* Glance::mount_of(const Fd& fd) {
  const auto id = mount_id_of(fd);
  if (!id)
    return nullptr;
  // The descriptor holds its mount, so that no other one gets its id while the table is read.
  for (;; read_some_mounts()) {
    if (const auto known = m_mounts.find(*id); known != m_mounts.end())
      return &known->second;
    if (m_reads_left == 0)
      return nullptr;
  }
}

/// The next lines of the table. After its end, or anything odd, there are no more.
void Glance::read_some_mounts() {
  if (!m_table)
    m_table.reset(::open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC));
  std::array<char, k_few_lines> buffer{};
  const ssize_t size = m_table ? ::read(m_table.get(), buffer.data(), buffer.size()) : -1;
  m_reads_left = size > 0 ? m_reads_left - 1 : 0;
  m_unparsed.append(buffer.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  const std::size_t whole_lines = m_unparsed.rfind('\n') + 1; // none: 0
  const auto mounts = MountTable::parse(std::string_view(m_unparsed).substr(0, whole_lines));
  m_unparsed.erase(0, whole_lines);
  if (!mounts)
    m_reads_left = 0;
  else
    for (const MountEntry& mount : mounts->entries())
      m_mounts.emplace(mount.id, mount);
}

} // namespace sharefs::sys
