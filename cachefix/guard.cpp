#include "cachefix/guard.hpp"

#include "base/path.hpp"
#include "base/text.hpp"

#include <algorithm>

namespace sharefs::cachefix {

std::vector<std::string> guard_directories(const std::string& program) {
  const std::string directory = parent_path(program);
  return {join_path(parent_path(directory), "share/sharefs/guard"), join_path(directory, "share/sharefs/guard")};
}

Result<std::string> find_guard(sys::System& system, const std::string& program) {
  const auto directories = guard_directories(program);
  for (const std::string& directory : directories) {
    const auto entry = system.entry({.path = directory, .follow = true});
    if (entry.shared)
      return fail(ErrorCode::not_found, directory + " lies on shared storage (" + entry.fs_type + ")",
                  "install sharefs on this host's own disk");
    if (entry.kind == sys::EntryKind::directory)
      return directory;
  }
  return fail(ErrorCode::not_found, directories.front() + " is not there");
}

Variables guard_variables(const Guard& guard, const std::string& python_path) {
  std::vector<std::string> path;
  if (!python_path.empty())
    path = split(python_path, ':');
  const std::string in_place_of_none = guard.directory + "/"; // sitecustomize.py reads the slash
  const bool was_none = std::erase(path, in_place_of_none) > 0;
  std::erase(path, guard.directory);
  path.insert(path.begin(), was_none || path.empty() ? in_place_of_none : guard.directory);
  Variables variables{{"PYTHONPATH", join(path, ":")}};
  if (!guard.keep.empty())
    variables.emplace_back("SHAREFS_GUARD_KEEP", guard.keep);
  if (!guard.config.empty())
    variables.emplace_back("SHAREFS_CONFIG", guard.config);
  return variables;
}

CachePlace place_of(sys::System& system, const std::string& path, const LocalChoice& choice) {
  const auto entry = system.entry({.path = path, .follow = true, .locks = true});
  CachePlace place{.shared = entry.shared, .excludes = entry.lock_scope == sys::LockScope::all_hosts};
  if (!entry.shared) {
    place.reason = "it lies on this host's own disk";
    return place;
  }
  place.place = "unique";
  const LocalRoot root = find_local_root(system, choice, system.identity());
  place.reason = root.problem;
  if (root.directory.empty() || root.memory)
    return place;
  const std::string directory = join_path(root.directory, cache_key(path));
  const auto made = make_caches(system, {{directory, normalize_path(path)}});
  if (made)
    return {"local", directory, "the node's own disk", place.shared, place.excludes};
  place.reason = made.error().message;
  return place;
}

} // namespace sharefs::cachefix
