#pragma once
#include <string>
#include <sys/types.h>
#include <vector>

namespace sharefs::sys {

/// The user and the host of this process.
struct Identity {
  std::string hostname;
  std::string boot_id;       ///< /proc/sys/kernel/random/boot_id
  std::string pid_namespace; ///< its number; empty in the first one of the kernel, which is not that of a container
  uid_t uid = 0;             ///< effective
  uid_t outside_uid = 0;     ///< the same outside of a user namespace, where `uid` may be 0 for any user
  gid_t gid = 0;
  std::string user; ///< the name of `uid`, or the number
  std::string home; ///< the home of `uid` from passwd, not $HOME
  int pid = 0;
  bool systemd = false;               ///< booted with systemd (/run/systemd/system exists)
  std::vector<std::string> addresses; ///< the addresses of this host's interfaces, without loopback
  /// Returns the name to note beside the number of a process: "node1", or "node1+4026532567" in a container, which may
  /// have its host's name but not its process numbers.
  [[nodiscard]] std::string process_host() const {
    return pid_namespace.empty() ? hostname : hostname + "+" + pid_namespace;
  }
  friend bool operator==(const Identity&, const Identity&) = default;
};

} // namespace sharefs::sys
