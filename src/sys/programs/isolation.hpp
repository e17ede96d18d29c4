#pragma once
// Runs a program of the system on given files, to learn how it interprets them. The program cannot change this host.
#include "base/result.hpp"

#include <map>
#include <string>
#include <vector>

namespace sharefs::sys {

inline constexpr int k_no_result = 126;

/// The differences between the host and the program's view of it. The program has its own PID, IPC, network and mount
/// namespaces, and a user namespace unless root runs it. So it has no network, and host names come only from files.
struct Isolation {
  /// Directories that are empty for the program, and writable. A directory that the host does not have is left out.
  std::vector<std::string> empty;
  /// Texts of files by path, which replace the host's files; the other entries of their directories are as on the host.
  std::map<std::string, std::string> files;
  /// Names of network interfaces that the program sees besides `lo`; no network is connected to them.
  std::vector<std::string> interfaces;
  /// A result file that the program writes. Its content becomes the standard output of the command, and the program's
  /// own output goes to standard error. The exit code is k_no_result if the file is missing. "": there is no result
  /// file.
  std::string result;

  friend bool operator==(const Isolation&, const Isolation&) = default;
};

/// Must be called in a forked child. Returns in a new process in the namespaces, which may then execute the program.
/// All file systems of the host are read-only for it (from Linux 5.12 on). Root's program runs as nobody, but may read
/// every file; an ordinary user's program runs as that user, without capabilities. Error `unsupported`: this kernel, or
/// its settings, do not allow such namespaces.
Result<void> isolate(const Isolation& isolation);

} // namespace sharefs::sys
