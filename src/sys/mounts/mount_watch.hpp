#pragma once
// The mount table of this process's namespace, read when it is first asked for and after every change of it.
#include "base/result.hpp"
#include "sys/mounts/mount_table.hpp"
#include "sys/process/fd.hpp"

#include <mutex>
#include <optional>

namespace sharefs::sys {

class MountWatch {
 public:
  /// /proc/self/mountinfo as it is now. proc_pid_mountinfo(5): poll(2) reports a change since it was read, so that
  /// asking again costs one system call. Any thread may ask; a forked child must not.
  Result<MountTable> current();

 private:
  /// True if mounts came or went since the last call.
  bool changed();

  std::mutex m_mutex;
  Fd m_file;
  std::optional<MountTable> m_table;
};

} // namespace sharefs::sys
