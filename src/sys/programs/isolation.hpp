#pragma once
// A program of the system that is asked what it makes of some files, while it can change nothing of this host.
#include "base/result.hpp"

#include <map>
#include <string>
#include <vector>

namespace sharefs::sys {

inline constexpr int k_no_result = 126;

/// The differences between the host and what the program sees. Its processes, network, mounts and, unless root asks,
/// users are namespaces of its own: it has no network and no names but those of files.
struct Isolation {
  /// Directories that are empty there, and that the program may write to; those that the host has not are left out.
  std::vector<std::string> empty;
  /// Texts that stand at these paths, in place of the host's files; all else in their directories is as on the host.
  std::map<std::string, std::string> files;
  /// Names of network interfaces that are there, beside `lo`, with no network behind them.
  std::vector<std::string> interfaces;
  /// A file that the program leaves behind: its content is what the command prints, in place of the program's own
  /// output, which comes with its errors, and the exit code is k_no_result if there is no such file. "": none.
  std::string result;

  friend bool operator==(const Isolation&, const Isolation&) = default;
};

/// In a forked child: returns in a process of its own in the namespaces, which may then execute the program. All file
/// systems of the host are read-only to it (from Linux 5.12 on). Root's program is nobody, who may read every file, and
/// an ordinary user's program is that user without any right. Error `unsupported`: this kernel, or whoever runs this
/// one, does not allow such namespaces.
Result<void> isolate(const Isolation& isolation);

} // namespace sharefs::sys
