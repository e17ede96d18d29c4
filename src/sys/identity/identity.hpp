#pragma once
#include <string>
#include <sys/types.h>
#include <vector>

namespace sharefs::sys {

/// Who and where we are.
struct Identity {
  std::string hostname;
  std::string boot_id; ///< /proc/sys/kernel/random/boot_id
  uid_t uid = 0;       ///< effective
  gid_t gid = 0;
  std::string user; ///< name of uid, or the number
  std::string home; ///< of uid by passwd, not $HOME
  int pid = 0;
  bool systemd = false;               ///< booted with systemd (/run/systemd/system exists)
  std::vector<std::string> addresses; ///< of this host's interfaces, without loopback
  friend bool operator==(const Identity&, const Identity&) = default;
};

} // namespace sharefs::sys
