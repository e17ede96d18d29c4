#pragma once
// The user and the host of this process, and the users of this host.
#include "base/result.hpp"
#include "sys/process/user.hpp"

#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace sharefs::sys {

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

/// Never fails: an unknown field stays empty. Name services are asked in a child with a deadline.
Identity local_identity();
/// Finds a user by name or by uid, by getpwnam(3) and getgrouplist(3) in a child with a deadline, because LDAP and NIS
/// can hang. Errors: `not_found`, `timeout`.
Result<User> local_user(const std::string& name);
/// Returns the name of this host, by gethostname(2).
std::string own_name();
/// Returns the id of this boot. This file of /proc never hangs.
std::string own_boot_id();

/// Returns the address as four or sixteen bytes, because an IPv6 address has several spellings. nullopt: the text is
/// not an address.
std::optional<std::string> address_bytes(const std::string& text);
/// Checks whether a host of sharefs.yaml, or of a mount, is the one that this program runs on. True for a loopback
/// address, an address of an interface, or the host's name ("node1" and "node1.cluster" are the same host). No name
/// service is asked.
bool is_this_host(const Identity& identity, const std::string& host);

} // namespace sharefs::sys
