#pragma once
// A mount that a person asks for. After decide() all of its options are set.
#include "base/diagnosis.hpp"
#include "base/path.hpp"
#include "base/source.hpp"
#include "mounts/options.hpp"
#include "sys/mounting/mount_call.hpp"

#include <set>
#include <string>
#include <vector>

namespace sharefs::mounts {

/// How it is mounted at boot.
enum class BootWay {
  none,
  automatic, ///< unit where systemd runs, else rc_local
  unit,      ///< a .mount, and a service that starts it when the server answers
  automount, ///< a .mount, and an .automount that starts it at the first use
  fstab,     ///< a line of fstab, and with systemd the same service as for `unit`
  rc_local,  ///< a command in rc.local that waits in the background
};

struct MountPoint {
  std::string name = {};        ///< "share"; empty for a mount that only the mount table knows
  std::string server = {};      ///< host name or address to mount from; empty: only the target is known
  std::string path = {};        ///< on the server
  std::string target = {};      ///< mount point; absolute, normalized
  std::string profile = "safe"; ///< see profiles.hpp
  Settings options = {};        ///< its own options; decide() adds those of the profile
  BootWay boot = BootWay::none;
  bool here = false;            ///< this host is the server: NFS is never used, because it could hang both sides
  std::string server_name = {}; ///< the server's name in sharefs.yaml; empty: the same as `server`
  std::string origin = {};      ///< file:line for messages

  /// True if this host is the server and its directory has the same path as the mount point: nothing is to be mounted.
  [[nodiscard]] bool is_in_place() const { return here && normalize_path(path) == target; }
  friend bool operator==(const MountPoint&, const MountPoint&) = default;
};

/// Returns the name of the mount, or its target if it has none. Commands accept both.
const std::string& name_of(const MountPoint& point);
/// Returns the name of its server for messages.
const std::string& server_of(const MountPoint& point);
/// Returns the TCP ports of its server, by its options.
sys::NfsPorts ports_of(const MountPoint& point);
/// Returns the server as Observation::servers and messages name it: "storage1", or "storage1 port 20490".
std::string server_key(const MountPoint& point);
/// Returns the words of `sharefs probe` that ask its server, or `source` (HOST:/path) of that server.
std::string probe_command(const MountPoint& point, const std::string& source = "");
/// Makes a diagnosis whose subject is the name of the mount.
Diagnosis about(const MountPoint& point, Severity severity, std::string code, std::string message,
                std::string hint = {}, std::string fix = {});

/// Returns the nearest of `targets` above `target`; "" if there is none.
std::string find_outer(const std::set<std::string>& targets, const std::string& target);

/// Appends `more` to `all`.
template <class T> void append(std::vector<T>& all, const std::vector<T>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

} // namespace sharefs::mounts
