#pragma once
// The node-local caches of this user: what is there, what it stands for, what may be deleted.
#include "cachefix/facts.hpp"

#include <chrono>
#include <cstdint>

namespace sharefs::cachefix {

struct CacheEntry {
  std::string path;
  std::string stands_for;  ///< the shared path; empty: not known
  std::uint64_t bytes = 0; ///< of its files
  std::int64_t used = 0;   ///< newest change of a file in it, seconds since 1970
  bool in_use = false;     ///< a live process has a file of it open or mapped, works in it, or names it
  bool measured = true;    ///< false: it could not be walked in time
  friend bool operator==(const CacheEntry&, const CacheEntry&) = default;
};

/// Every cache directory below `root` (LOCAL/USER), sorted by path. Local disks only; bounded by `deadline`.
Result<std::vector<CacheEntry>> list_caches(const std::string& root, std::chrono::milliseconds deadline);

struct PruneRequest {
  std::int64_t older_than = 0;       ///< seconds; 0: any age
  std::optional<std::uint64_t> keep; ///< delete the longest unused first until so many bytes are left
};
/// What to delete: never one that is in use, or whose use could not be told. Pure.
std::vector<CacheEntry> choose_to_prune(std::vector<CacheEntry> entries, const PruneRequest& request, std::int64_t now);
/// Deletes one cache directory (its name must be a key of ours). Never follows a link, never leaves its file system.
Result<void> remove_cache(const std::string& root, const CacheEntry& entry, std::chrono::milliseconds deadline);

} // namespace sharefs::cachefix
