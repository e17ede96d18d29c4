#pragma once
// Where a path lies: on this host's own disks or on storage that other hosts share. As a program would resolve it,
// through links and `..`, but without ever touching a shared mount in process.
#include "sys/fs/path_probe.hpp"
#include "sys/fs/place.hpp"
#include "sys/mounts/mount_table.hpp"
#include "sys/system.hpp"

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace sharefs::sys {

/// One path component as lstat and readlink see it.
struct Seen {
  PathKind kind = PathKind::unknown;
  std::string link_target;

  friend bool operator==(const Seen&, const Seen&) = default;
};

/// Decides places from values: the mount table and two ways to look at a component. Remembers what it saw.
class Resolver {
 public:
  /// `local` is asked only for paths that no mount that may hang lies above; `remote` for all others, several at once,
  /// and may answer `unknown` (a dead server): then the place counts as shared if the mount is.
  using Local = std::function<Seen(const std::string&)>;
  using Remote = std::function<std::vector<Seen>(const std::vector<std::string>&)>;
  Resolver(const MountTable& mounts, Local local, Remote remote);

  /// `path` is absolute. Never fails: more than 40 links give a shared place with a doubt. Where nothing is shared,
  /// links and kinds are not looked at, unless insist() was called: that is all that `run` needs, and costs no time.
  Place resolve(std::string_view path);
  void insist() { m_insist = true; }
  /// True if some mount of the table is shared: if not, nothing is, and nothing needs to be resolved.
  [[nodiscard]] bool any_shared() const { return m_any_shared; }

 private:
  [[nodiscard]] bool look_may_hang(std::string_view path) const;
  const Seen& look(const std::string& path, const std::vector<std::string>& ahead);

  const MountTable& m_mounts;
  bool m_insist = false;
  Local m_local;
  Remote m_remote;
  bool m_any_shared = false;
  std::set<std::string, std::less<>> m_may_hang; ///< targets of mounts
  std::map<std::string, Seen, std::less<>> m_seen;
};

/// lstat and readlink in process, under the root of `files`; only for paths known to be local.
Seen look_at_local(const Files& files, const std::string& path);
/// A resolver on the machine: shared paths are looked at in a child, all within `deadline`; after the first time-out no
/// second one is waited for on the same mount.
Resolver make_resolver(System& system, const MountTable& mounts, std::chrono::milliseconds deadline);

} // namespace sharefs::sys
