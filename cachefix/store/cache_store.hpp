#pragma once
// The node-local caches of this user: what is there, what it stands for, what may be deleted.
#include "plan/plan.hpp"
#include "sys/process/wire.hpp"

namespace sharefs::cachefix {

struct CacheEntry {
  std::string path;
  std::string stands_for;  ///< the shared path; empty: not known
  std::uint64_t bytes = 0; ///< of its files
  std::int64_t used = 0;   ///< newest change of a file in it, seconds since 1970
  std::string in_use;      ///< why it must stay: a live process has a file of it open or mapped, works in it, or names
                           ///< it, or one could not be checked; empty: no process uses it
  std::uint64_t device = 0, inode = 0;
};
template <FieldsOf<CacheEntry> Entry> auto fields(Entry& e) {
  return named("path", e.path, "stands_for", e.stands_for, "bytes", e.bytes, "used", e.used, "in_use", e.in_use,
               "device", e.device, "inode", e.inode);
}

/// Every cache directory below `root`, a directory of this user's own (own_directories()), sorted by path. Measuring
/// ends with `timeout` when it makes no progress for `deadline`. A process that hangs in the kernel makes no more than
/// 3 s of it.
Result<std::vector<CacheEntry>> list_caches(const std::string& root, std::chrono::milliseconds deadline);
/// CacheEntry::in_use of each, as it is now.
void note_uses(std::vector<CacheEntry>& entries);

struct PruneRequest {
  std::int64_t older_than = 0;       ///< seconds; 0: any age
  std::optional<std::uint64_t> keep; ///< delete the longest unused first until so many bytes are left
};
/// Deletes the longest unused first, and never one that is in use. Pure.
plan::Plan plan_prune(std::vector<CacheEntry> entries, const PruneRequest& request, std::int64_t now);
/// "today", "1 day", "12 days"; "-": not known.
std::string age_of(const CacheEntry& entry, std::int64_t now);

} // namespace sharefs::cachefix
