#pragma once
// Where a path lies: on this host's own disks or on storage that other hosts share. A value.
#include "sys/fs/path_probe.hpp"

#include <string>

namespace sharefs::sys {

struct Place {
  std::string path;     ///< as asked, absolute and lexically normalized
  std::string resolved; ///< through links as far as they could be seen
  bool shared = false;  ///< on a file system that other hosts share (is_shared_fs_type), or not to be told: see `doubt`
  PathKind kind = PathKind::unknown; ///< missing: the place is that of the nearest existing ancestor
  std::string mount;                 ///< target of the mount that decides
  std::string fs_type;
  std::string doubt; ///< why the links below a shared mount could not be followed ("no answer in time"); else empty

  friend bool operator==(const Place&, const Place&) = default;
};

} // namespace sharefs::sys
