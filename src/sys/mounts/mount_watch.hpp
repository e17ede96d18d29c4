#pragma once
// Keeps the mount table of this process's namespace, and reads it again only after a change.
#include "base/result.hpp"
#include "sys/mounts/mount_table.hpp"
#include "sys/process/fd.hpp"

#include <mutex>
#include <optional>

namespace sharefs::sys {

class MountWatch {
 public:
  /// Returns the current table of /proc/self/mountinfo. poll(2) reports a change since the file was read
  /// (proc_pid_mountinfo(5)), so that a further call costs one system call. Any thread may call this; a forked child
  /// must not.
  Result<MountTable> current();

 private:
  /// True if the table has changed since the last call.
  bool changed();

  std::mutex m_mutex;
  Fd m_file;
  std::optional<MountTable> m_table;
};

} // namespace sharefs::sys
