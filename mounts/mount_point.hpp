#pragma once
// The value of the client side: a mount as a person asks for it, and after decide() with every option decided.
#include "base/diagnosis.hpp"
#include "base/path.hpp"
#include "base/source.hpp"
#include "mounts/options.hpp"

#include <set>
#include <string>
#include <vector>

namespace sharefs::mounts {

/// What mounts it again at boot.
enum class BootWay {
  none,
  automatic, ///< unit where systemd runs, else rc_local
  unit,      ///< a .mount, and a service that starts it when the server answers
  automount, ///< a .mount, and an .automount that starts it at the first use
  fstab,     ///< a line, and with systemd the same service
  rc_local,  ///< a command in rc.local that waits in the background
};

struct MountPoint {
  std::string name = {};        ///< "share"; empty for a mount that only the mount table knows
  std::string server = {};      ///< host name or address to mount from; empty: only the target is known
  std::string path = {};        ///< on the server
  std::string target = {};      ///< mount point; absolute, normalized
  std::string profile = "safe"; ///< see profiles.hpp
  Settings options = {};        ///< own ones; decide() adds the profile's
  BootWay boot = BootWay::none;
  bool here = false;            ///< its server is this host: used as it lies, never over NFS, which could hang both
  std::string server_name = {}; ///< as sharefs.yaml calls it; empty: as `server`
  std::string origin = {};      ///< file:line for messages

  /// The server's directory is where the clients mount it: on the server there is nothing to mount.
  [[nodiscard]] bool is_in_place() const { return here && normalize_path(path) == target; }
  friend bool operator==(const MountPoint&, const MountPoint&) = default;
};

/// The name of a share, or its target: what a person gives to sharefs to mean it.
const std::string& name_of(const MountPoint& point);
/// How messages call its server.
const std::string& server_of(const MountPoint& point);
/// A diagnosis of it, which names it first.
Diagnosis about(const MountPoint& point, Severity severity, std::string code, std::string message,
                std::string hint = {}, std::string fix = {});

/// "/data", "/data/share" for "/data/share".
std::vector<std::string> ancestors_and_self(const std::string& target);
/// The nearest of `targets` above `target`; "" if there is none.
std::string outer_of(const std::set<std::string>& targets, const std::string& target);

/// `more` behind what is in `all`.
template <class T> void append(std::vector<T>& all, const std::vector<T>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

} // namespace sharefs::mounts
