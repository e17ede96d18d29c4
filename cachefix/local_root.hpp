#pragma once
// Which directory on this host's own disks holds this user's caches.
#include "sys/system.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace sharefs::cachefix {

/// caches.local and caches.min_free of the configuration.
struct LocalChoice {
  std::vector<std::string> directories;
  std::uint64_t min_free_bytes = 1ULL << 30U;
};

/// A directory with fewer free inodes is not used: a dataset cache is few large files, a cache of modules and kernels
/// is many small ones.
inline constexpr std::uint64_t k_least_free_inodes = 10'000;

/// Where this user's node-local caches are.
struct LocalRoot {
  std::string directory; ///< LOCAL/USER, or /var/tmp/sharefs-USER; empty: none can be used
  std::string problem;   ///< why no directory can be used at all, or why the one that comes first to mind cannot
  std::string hint;      ///< what to do about it
  friend bool operator==(const LocalRoot&, const LocalRoot&) = default;
};

/// Of the configured directories that are not shared, that nobody else could exchange, and that have room for bytes and
/// inodes: the one with the most free space, the first of equal ones. Without any /var/tmp/sharefs-USER, if that has
/// room. Where somebody else has made LOCAL/USER, a LOCAL/USER.XXXXXX of this user stands for it, or a new one.
LocalRoot find_local_root(sys::System& system, const LocalChoice& choice, const sys::Identity& identity);

/// All directories with caches of this user that exist: of the configured ones and of /var/tmp, under whichever name.
std::vector<std::string> own_directories(sys::System& system, const LocalChoice& choice, const sys::Identity& identity);

/// The name of a directory for a user: characters [A-Za-z0-9_.-] only, different users different names.
std::string directory_name_of(const std::string& user, unsigned uid);

} // namespace sharefs::cachefix
