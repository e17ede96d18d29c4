#include "sys/mounts/mount_watch.hpp"

#include <array>
#include <cerrno>
#include <poll.h>

namespace sharefs::sys {
namespace {

constexpr const char* k_mountinfo = "/proc/self/mountinfo";
constexpr int k_most_reads = 8;

Result<std::string> read_from_start(int fd) {
  std::string text;
  std::array<char, 65536> buffer{};
  for (off_t at = 0;; at = static_cast<off_t>(text.size())) {
    const ssize_t count = ::pread(fd, buffer.data(), buffer.size(), at);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return fail(errno_error(errno, k_mountinfo));
    if (count == 0)
      return text;
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

} // namespace

bool MountWatch::changed() {
  pollfd change{m_file.get(), POLLPRI, 0};
  return ::poll(&change, 1, 0) > 0;
}

Result<MountTable> MountWatch::current() {
  const std::lock_guard lock(m_mutex);
  if (!m_file)
    m_file.reset(::open(k_mountinfo, O_RDONLY | O_CLOEXEC));
  if (!m_file)
    return fail(errno_error(errno, k_mountinfo));
  if (!changed() && m_table)
    return *m_table;
  // Mounts that come or go while it is read may leave entries out (before kernel 5.8): then it is read again.
  for (int reads = 0; reads < k_most_reads; ++reads) {
    const auto text = read_from_start(m_file.get());
    if (!text)
      return fail(text.error());
    if (changed() && reads + 1 < k_most_reads)
      continue;
    auto table = MountTable::parse(*text);
    if (!table)
      return table;
    m_table = std::move(*table);
    break;
  }
  return *m_table;
}

} // namespace sharefs::sys
