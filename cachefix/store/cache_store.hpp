#pragma once
// The node-local caches of this user: what is there, what it stands for, what may be deleted.
#include "plan/plan.hpp"
#include "sys/system.hpp"

namespace sharefs::cachefix {

struct CacheEntry {
  std::string path;
  std::string stands_for;  ///< the shared path; empty: not known
  std::uint64_t bytes = 0; ///< of its files
  std::int64_t used = 0;   ///< newest change of a file in it, seconds since 1970
  std::string in_use = {}; ///< why it must stay: a live process has a file of it open or mapped, works in it, or names
                           ///< it, or one could not be checked; empty: no process uses it
  std::uint64_t device = 0, inode = 0;
};

/// Every cache directory below `root`, a directory of this user's own (own_directories()), sorted by path. Measuring
/// ends with `timeout` when it makes no progress for `deadline`. A process that hangs in the kernel makes no more than
/// 3 s of it.
Result<std::vector<CacheEntry>> list_caches(sys::System& system, const std::string& root,
                                            std::chrono::milliseconds deadline);
/// CacheEntry::in_use of each, as it is now.
void note_uses(sys::System& system, std::vector<CacheEntry>& entries);

struct PruneRequest {
  std::int64_t older_than = 0;       ///< seconds; 0: any age
  std::optional<std::uint64_t> keep; ///< delete the longest unused first until so many bytes are left
};
/// Deletes the longest unused first, and never one that is in use. Pure.
plan::Plan plan_prune(std::vector<CacheEntry> entries, const PruneRequest& request, std::int64_t now);
/// "today", "1 day", "12 days"; "-": not known.
std::string age_of(const CacheEntry& entry, std::int64_t now);

// A warm start: what a shared cache holds is copied to the node before the program begins.

struct Seeded {
  std::uint64_t files = 0, bytes = 0; ///< copied now; none: `local` holds something already, or `shared` nothing
};

/// Copies the cache at `shared`, its path without links, to `local`, which exists. Caches are code that is run, so
/// nothing is copied where some of it belongs to neither this user nor root, and nothing through links. Each file is
/// read again and compared, and the whole gets its name at once. In a child that is given up when it makes no progress
/// for `deadline`: the share may hang. Errors: `failed` where it does not fit, and those of tree::copy.
Result<Seeded> seed_cache(const std::string& shared, const std::string& local, std::uint64_t keep_free_bytes,
                          std::chrono::milliseconds deadline);

/// Bytes of the files below a shared directory, as far as they can be counted within `deadline`; an error else.
Result<std::uint64_t> size_of_cache(const std::string& shared, std::chrono::milliseconds deadline);

} // namespace sharefs::cachefix
