#pragma once
// The guard is Python code (cachefix/guard) that ends the race in the program's own process, because only there the
// path of a cache, its completeness and the caller are known. `sharefs run` puts the guard in front of PYTHONPATH. The
// guard asks the sharefs of its own host where to build.
#include "cachefix/store/local_root.hpp"

#include <string>
#include <utility>
#include <vector>

namespace sharefs::cachefix {

struct Guard {
  std::string directory;         ///< holds sitecustomize.py; on this host's own disk
  std::string build = "publish"; ///< how the guard builds: publish, unique or local
  std::string keep = {};         ///< variables that the guard does not move, separated by `:`
  std::string config = {};       ///< the file that --config named for this launch; empty: each host reads its own
};

/// Returns the directories in which the guard of the sharefs at this path may lie: PREFIX/share/sharefs/guard for
/// PREFIX/bin/sharefs, then share/sharefs/guard beside the program. Pure.
std::vector<std::string> guard_directories(const std::string& program);

/// Returns the first of these directories that exists. One on shared storage is refused: if its mount hung, every
/// Python would hang at its start. Error `not_found`, with the reason.
Result<std::string> find_guard(sys::System& system, const std::string& program);

using Variables = std::vector<std::pair<std::string, std::string>>;
/// Returns the variables for a program whose PYTHONPATH is `python_path` ("" for none). The guard's directory comes
/// first in PYTHONPATH, and only once; with a slash at its end if there was no other, so that the guard knows what a
/// script means that lengthens PYTHONPATH.
Variables guard_variables(const Guard& guard, const std::string& python_path);

/// The place in which the cache of a path is built.
struct CachePlace {
  std::string place =
      "leave"; ///< local: in `directory`; unique: on the share, under a name of its own; leave: at the path itself
  std::string directory = {}; ///< for `local` only: it exists, has mode 0700 and belongs to this user
  std::string reason = {};
  bool shared = false;
  bool excludes = false; ///< true if file locks at the path exclude all other hosts
};
/// Decides where the cache of this path is built, and makes the directory if the place is `local`.
CachePlace place_of(sys::System& system, const std::string& path, const LocalChoice& choice);

} // namespace sharefs::cachefix
