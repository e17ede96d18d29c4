#include "cachefix/store/cache_store.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "sys/find_processes.hpp"

#include <algorithm>
#include <set>

namespace sharefs::cachefix {
namespace {

constexpr std::size_t k_key_length = 12;
constexpr std::size_t k_longest_origin = 4096;
constexpr std::size_t k_most_process_text = 16U << 20U; // a process with more text counts as not checked

/// True if the name is one that cache_key() makes. Nothing else below the directory is listed or deleted.
bool is_key(std::string_view name) {
  return name.size() == k_key_length && name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// Returns the keys of caches that a live process uses: it has open or mapped files there (datasets maps its tables),
/// works there, or names a cache in its arguments or environment because it will open it. A key is looked for behind
/// any directory, because a container may see the caches at another path. nullopt if a process could not be checked.
std::optional<std::set<std::string>> keys_in_use(sys::System& system) {
  std::set<std::string> keys;
  std::vector<int> pids;
  const unsigned uid = system.identity().uid;
  for (const auto& process : sys::read_processes(system, sys::process_ids(system), {{.path = ""}}))
    if (const auto owner = process.entries[0].uid; owner == uid || owner == 0)
      pids.push_back(process.pid); // other users cannot read a directory with mode 0700
  bool all_checked = true;
  const auto note = [&](const sys::Entry& entry) {
    all_checked = all_checked && !entry.hung() && entry.content.size() < k_most_process_text;
    for (const std::string_view text : {std::string_view(entry.link_target), std::string_view(entry.content)})
      for (auto at = text.find('/'); at != std::string_view::npos; at = text.find('/', at + 1))
        if (const auto name = text.substr(at + 1, k_key_length); is_key(name))
          keys.emplace(name);
  };
  for (const auto& process : sys::read_processes(system, pids,
                                                 {{.path = "cwd"},
                                                  {.path = "fd", .list = true},
                                                  {.path = "maps", .read_bytes = k_most_process_text},
                                                  {.path = "cmdline", .read_bytes = k_most_process_text},
                                                  {.path = "environ", .read_bytes = k_most_process_text}})) {
    std::ranges::for_each(process.entries, note);
    std::ranges::for_each(process.descriptors, note);
  }
  return all_checked ? std::optional(std::move(keys)) : std::nullopt;
}

} // namespace

Result<std::vector<CacheEntry>> list_caches(sys::System& system, const std::string& root,
                                            std::chrono::milliseconds deadline) {
  sys::EntryRequest request{{}, deadline};
  for (const std::string& name : system.entry({.path = root, .follow = true, .list = true}, deadline).names)
    if (is_key(name))
      for (const std::string prefix : {"/", "/.origin-"})
        request.queries.push_back({.path = root + prefix + name, .read_bytes = k_longest_origin});
  const std::vector<sys::Entry> found = system.entries(request);
  tree::Options options;
  options.deadline = deadline;
  std::vector<CacheEntry> caches;
  for (std::size_t i = 0; i + 1 < found.size(); i += 2) {
    const sys::Entry& cache = found[i];
    if (cache.kind != sys::EntryKind::directory)
      continue;
    const tree::Place place{
        .path = cache.path, .root = system.files().root(), .device = cache.device, .inode = cache.inode};
    const auto measured = tree::measure(place, options);
    if (!measured && measured.error().code != ErrorCode::not_found && measured.error().code != ErrorCode::conflict)
      return fail(measured.error());
    if (!measured) // somebody deleted the cache meanwhile
      continue;
    const std::string note = found[i + 1].size <= k_longest_origin ? found[i + 1].content : "";
    caches.push_back({.path = cache.path,
                      .stands_for = note.substr(0, note.find('\n')),
                      .bytes = measured->allocated,
                      .used = measured->used,
                      .device = cache.device,
                      .inode = cache.inode});
  }
  note_uses(system, caches); // last, so that it is still true after the long measuring
  return caches;
}

void note_uses(sys::System& system, std::vector<CacheEntry>& entries) {
  const auto used = keys_in_use(system);
  for (CacheEntry& entry : entries)
    entry.in_use = !used ? "a process could not be checked" : used->contains(base_name(entry.path)) ? "in use" : "";
}

std::string age_of(const CacheEntry& entry, std::int64_t now) {
  const std::int64_t days = (now - entry.used) / 86'400;
  return entry.used == 0 ? "-" : days <= 0 ? "today" : count_of(static_cast<std::size_t>(days), "day");
}

plan::Plan plan_prune(std::vector<CacheEntry> entries, const PruneRequest& request, std::int64_t now) {
  std::ranges::sort(entries, {}, &CacheEntry::used);
  std::uint64_t left = 0;
  for (const CacheEntry& entry : entries)
    left += entry.bytes;
  plan::Plan plan;
  for (const CacheEntry& entry : entries) {
    const bool old = now - entry.used >= request.older_than;
    const bool too_much = !request.keep || left > *request.keep;
    if (!entry.in_use.empty() || !old || !too_much)
      continue;
    left -= entry.bytes;
    const std::string of = entry.stands_for.empty() ? "" : ", for " + to_utf8(entry.stands_for);
    plan.add(entry.path, format_bytes(entry.bytes) + ", last used: " + age_of(entry, now) + of,
             plan::RemoveTree{entry.path, entry.device, entry.inode});
    if (!entry.stands_for.empty())
      plan.add_bookkeeping(entry.path, "the note of what it stands for",
                           plan::remove_file(parent_path(entry.path) + "/.origin-" + base_name(entry.path),
                                             entry.stands_for + "\n", 0600),
                           true);
  }
  return plan;
}

} // namespace sharefs::cachefix
