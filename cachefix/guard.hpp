#pragma once
// The guard: Python code that ends the race in the program's own process (cachefix/guard), where the path of a cache,
// its completeness and who asks are known. `sharefs run` puts it in front of PYTHONPATH; what is wanted it asks the
// sharefs of its host.
#include "cachefix/store/local_root.hpp"

#include <string>
#include <utility>
#include <vector>

namespace sharefs::cachefix {

struct Guard {
  std::string directory;         ///< with its sitecustomize.py, on this host's own disk
  std::string build = "publish"; ///< publish, unique, local: where it builds
  std::string keep = {};         ///< variables that it does not move, with `:` between them
  std::string config = {};       ///< the configuration that was named for this launch; empty: each host's own
};

/// Where the guard may lie for the program at a path: PREFIX/share/sharefs/guard for PREFIX/bin/sharefs, and
/// share/sharefs/guard beside it. Pure.
std::vector<std::string> guard_directories(const std::string& program);

/// The first of them that is there. Never on shared storage: a directory of PYTHONPATH on a mount that hangs would hang
/// every Python at its start. Error `not_found`, with the reason.
Result<std::string> find_guard(sys::System& system, const std::string& program);

using Variables = std::vector<std::pair<std::string, std::string>>;
/// The variables for a program whose PYTHONPATH is `python_path` ("" for none): the guard's directory goes in front,
/// once.
Variables guard_variables(const Guard& guard, const std::string& python_path);

/// Where what is asked for at a path is built.
struct CachePlace {
  std::string place = "leave"; ///< local: in `directory`; unique: beside the path, under a name of its own; leave
  std::string directory = {};  ///< of `local`: made, mode 0700, this user's own
  std::string reason = {};
  bool shared = false;
  bool excludes = false; ///< file locks there exclude all other hosts
};
/// Makes the directory for `local`.
CachePlace place_of(sys::System& system, const std::string& path, const LocalChoice& choice);

} // namespace sharefs::cachefix
