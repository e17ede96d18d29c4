#pragma once
// The values of the client side: what should be mounted, before and after its profile is resolved.
#include <string>
#include <string_view>
#include <vector>

namespace sharefs::mounts {

/// A mount as a person asks for it.
struct MountRequest {
  std::string name;                 ///< "share"; empty for a mount that only the mount table knows
  std::string server;               ///< host name or address to mount from
  std::string path;                 ///< on the server
  std::string target;               ///< mount point; absolute, normalized
  std::string profile = "safe";     ///< see profiles.hpp
  std::vector<std::string> options; ///< own ones, override the profile's by key
  bool boot = false;                ///< to be mounted at boot
  std::string origin;               ///< file:line for messages

  friend bool operator==(const MountRequest&, const MountRequest&) = default;
};

/// A mount with every option decided.
struct MountPoint {
  std::string name, server, path, target;
  std::vector<std::string> options; ///< as written for mount(8), one each
  std::string origin;

  friend bool operator==(const MountPoint&, const MountPoint&) = default;
};

/// What mountinfo calls `server:/path` or `[2001:db8::1]:/path`.
struct Source {
  std::string server; ///< without brackets
  std::string path;
  friend bool operator==(const Source&, const Source&) = default;
};

/// An IPv6 address gets its brackets.
std::string format_source(std::string_view server, std::string_view path);
/// The host ends at the first `:/` (or, for a relative path, at the first `:`); a text without a colon is all path.
Source parse_source(std::string_view text);
/// "share (/data/share)" or, without a name, "/data/share": how messages call a mount.
std::string title(std::string_view name, std::string_view target);

} // namespace sharefs::mounts
