#pragma once
// Mount profiles: named sets of options, and how a request becomes a mount point with every option decided.
#include "base/result.hpp"
#include "mounts/mount_point.hpp"
#include "sys/nfs/nfs_probe.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sharefs::mounts {

struct Profile {
  std::string_view name;
  std::string_view summary;
  std::string_view options; ///< before the pinned ones
  bool pins_version;        ///< adds vers= and proto= by what the server answers
  int connections;          ///< nconnect= to a server on another host; 0: none
};
std::span<const Profile> profiles();
/// `config` error with a "did you mean" hint.
Result<Profile> find_profile(std::string_view name);

/// What profiles depend on.
struct ServerFacts {
  bool known = false; ///< the server answered; otherwise nothing is pinned
  bool v4 = false;
  bool ipv6 = false;
  bool this_host = false; ///< a loopback mount
  friend bool operator==(const ServerFacts&, const ServerFacts&) = default;
};
/// `addresses` are this host's own. A probe that does not reach NFS gives known = false.
ServerFacts server_facts(const sys::NfsProbe& probe, const std::vector<std::string>& addresses);

/// Profile, then pinned options, then the request's own, each overriding by key. Error as find_profile.
Result<MountPoint> decide(const MountRequest& request, const ServerFacts& server);

/// What a person should know before the mount is made: the consequences of its options, and the unpinned version.
std::vector<std::string> notes_on(const MountPoint& point);

} // namespace sharefs::mounts
