#pragma once
// Lists the node-local caches of this user, says which of them may be deleted, and fills new ones.
#include "plan/plan.hpp"
#include "sys/system.hpp"
#include "tree/tree.hpp"

namespace sharefs::cachefix {

struct CacheEntry {
  std::string path;
  std::string stands_for;  ///< the shared path; empty: not known
  std::uint64_t bytes = 0; ///< allocated for its files
  std::int64_t used = 0;   ///< newest change of a file in it, in seconds since 1970
  std::string in_use = {}; ///< why it must stay: a live process has one of its files open or mapped, works in it,
                           ///< or names it, or could not be checked; empty: no process uses it
  std::uint64_t device = 0, inode = 0;
  std::uint64_t note_inode = 0; ///< of the file with `stands_for`; 0: there is none
  bool left = false;            ///< a prune that was cut off has left it: half of a cache, which nobody finds
};

/// Returns every cache directory below `root`, which is one of own_directories(), sorted by path, and what is `left`.
/// Error `timeout` if measuring makes no progress for `deadline`. A process that hangs in the kernel is waited for up
/// to 3 s.
Result<std::vector<CacheEntry>> list_caches(sys::System& system, const std::string& root,
                                            std::chrono::milliseconds deadline);
/// Sets CacheEntry::in_use of each entry to its present state.
void note_uses(sys::System& system, std::vector<CacheEntry>& entries);

struct PruneRequest {
  std::int64_t older_than = 0;       ///< seconds; 0: any age
  std::optional<std::uint64_t> keep; ///< caches are deleted until only so many bytes are left; nullopt: no limit
};
/// Returns the plan that deletes caches, the longest unused first, and none that is in use; what is `left` whatever its
/// age. Pure.
plan::Plan plan_prune(std::vector<CacheEntry> entries, const PruneRequest& request, std::int64_t now);
/// Returns how long ago a cache was used: "today", "1 day", "12 days", or "-" if that is not known.
std::string age_of(const CacheEntry& entry, std::int64_t now);

// Seeding copies the files of a shared cache to the node before the program begins.

/// Copies the cache at `shared`, a path without links, to `local`, which exists. Caches are code that is run, so links
/// are not followed, and nothing is copied if a file belongs to neither this user nor root. Each file is read again and
/// compared, and `local` becomes complete in one rename. The share may hang, so a child copies, and it is given up if
/// it makes no progress for `deadline`. Nothing is copied if `local` is not empty,
/// or `shared` is. Errors: `failed` if the node has no room, and those of tree::copy.
Result<tree::CopyReport> seed_cache(const std::string& shared, const std::string& local, std::uint64_t keep_free_bytes,
                                    std::chrono::milliseconds deadline);

/// Returns the bytes of the files below a shared directory, up to the first directory that cannot be read; an error if
/// counting takes longer than `deadline`.
Result<std::uint64_t> size_of_cache(const std::string& shared, std::chrono::milliseconds deadline);

} // namespace sharefs::cachefix
