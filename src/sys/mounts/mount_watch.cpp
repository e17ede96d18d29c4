#include "sys/mounts/mount_watch.hpp"

#include "base/try.hpp"
#include "sys/process/child.hpp"

#include <cerrno>
#include <poll.h>

namespace sharefs::sys {
namespace {

constexpr const char* k_mountinfo = "/proc/self/mountinfo";
constexpr int k_most_reads = 8;

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
  // The file is read again if the table has changed meanwhile: before kernel 5.8 entries could be missing then.
  for (int reads = 0; reads < k_most_reads; ++reads) {
    std::string text;
    ::lseek(m_file.get(), 0, SEEK_SET);
    if (const int error = read_all(m_file.get(), text); error != 0)
      return fail(errno_error(error, k_mountinfo));
    if (changed() && reads + 1 < k_most_reads)
      continue;
    TRY_ASSIGN(m_table, MountTable::parse(text));
    break;
  }
  return *m_table;
}

} // namespace sharefs::sys
