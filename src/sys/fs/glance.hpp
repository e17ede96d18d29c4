#pragma once
// The quick look: a path that lies on this host's own disks is told to do so by what the kernel remembers, without
// reading a mount table of thousands of lines and without asking any file system.
#include "sys/fs/place.hpp"
#include "sys/mounts/mount_table.hpp"
#include "sys/process/fd.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <sys/stat.h>

namespace sharefs::sys {

class Glance {
 public:
  /// Never knows: for hosts that are described and not real.
  Glance() = default;
  /// Of this process's own mount namespace. Reads the beginning of the mount table when it is first asked.
  static Glance of_this_host();
  /// With the mounts of this process's namespace given.
  explicit Glance(const MountTable& mounts);

  /// The place of an absolute path, equal to Resolver's, if it is on this host's own disks and the kernel's name cache
  /// knows the whole way there; nullopt: to be told by the mount table. Never waits: openat2(2) with RESOLVE_CACHED
  /// fails where a file system would have to be asked, and only an O_PATH descriptor of a mount that is known to be
  /// local is looked at.
  std::optional<Place> at(std::string_view path);

 private:
  std::optional<Place> look(const std::string& path);
  std::optional<Place> existing(const std::string& path, Fd fd);
  std::optional<Place> missing(const std::string& path);
  /// Its mount, if it cannot hang; only then the status is asked for.
  const MountEntry* look_at(const Fd& fd, struct stat& status);
  const MountEntry* mount_of(const Fd& fd);
  void read_some_mounts();

  bool m_knows = false;
  Fd m_table;             ///< /proc/self/mountinfo, read as far as it was needed
  std::string m_unparsed; ///< the beginning of a line of it
  int m_reads_left = 0;
  std::map<int, MountEntry> m_mounts; ///< by id
  std::map<std::string, std::optional<Place>> m_seen;
};

} // namespace sharefs::sys
