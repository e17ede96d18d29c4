#pragma once
// Mount profiles: named sets of options, and how a mount point gets every option decided.
#include "base/result.hpp"
#include "mounts/mount_point.hpp"
#include "sys/nfs/nfs_probe.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace sharefs::mounts {

/// What profiles depend on.
struct ServerFacts {
  bool known = false; ///< the server answered for the version that would be pinned; otherwise nothing is
  bool v4 = false;
  bool ipv6 = false;
  bool this_host = false; ///< a loopback mount
  friend bool operator==(const ServerFacts&, const ServerFacts&) = default;
};
/// `addresses` are this host's own. A probe that does not reach NFS gives known = false.
ServerFacts server_facts(const sys::NfsProbe& probe, const std::vector<std::string>& addresses);

/// Profile, then pinned options, then the point's own, each overriding by key. `config` error with a "did you mean"
/// hint for an unknown profile.
Result<MountPoint> decide(MountPoint point, const ServerFacts& server);

/// What a person should know before the mount is made: the consequences of its options, and the unpinned version.
std::vector<std::string> notes_on(const MountPoint& point);

} // namespace sharefs::mounts
