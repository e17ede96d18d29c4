#include "cachefix/store/cache_store.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "sys/find_processes.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace sharefs::cachefix {
namespace {

constexpr std::size_t k_key_length = 12;
constexpr std::string_view k_left = ".old-";
constexpr std::size_t k_longest_origin = 4096;
constexpr std::size_t k_most_process_text = 16U << 20U; // a process with more text counts as not checked

/// True if the name is one that cache_key() makes. Nothing else below the directory is listed or deleted.
bool is_key(std::string_view name) {
  return name.size() == k_key_length && name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// Returns the name of a cache that is being deleted. Two that lie there at the same time have different inodes.
std::string left_name(const std::string& key, std::uint64_t inode) {
  return fmt::format("{}{}.{}", k_left, key, inode);
}

bool is_left(std::string_view name) {
  const auto behind = name.substr(std::min(name.size(), k_left.size()));
  return name.starts_with(k_left) && is_key(behind.substr(0, k_key_length)) && behind.find('.') == k_key_length;
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
  const auto there = system.entry({.path = root, .follow = true, .list = true}, deadline);
  if (there.error_number != 0 && there.kind != sys::EntryKind::missing)
    return fail(there.error());
  sys::EntryRequest request{{}, deadline};
  for (const std::string& name : there.names)
    if (is_key(name) || is_left(name))
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
    const sys::Entry& origin = found[i + 1];
    const std::string note = origin.size <= k_longest_origin ? origin.content : "";
    caches.push_back({.path = cache.path,
                      .stands_for = note.substr(0, note.find('\n')),
                      .bytes = measured->allocated,
                      .used = measured->used,
                      .device = cache.device,
                      .inode = cache.inode,
                      .note_inode = origin.kind == sys::EntryKind::file ? origin.inode : 0,
                      .left = is_left(base_name(cache.path))});
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
    left += entry.left ? 0 : entry.bytes;
  plan::Plan plan;
  for (const CacheEntry& entry : entries) {
    const auto removal = [&](const std::string& path, std::uint64_t inode, const std::string& aside) {
      return plan::RemoveTree{.path = path, .device = entry.device, .inode = inode, .aside = aside};
    };
    if (entry.left) {
      plan.add(entry.path, format_bytes(entry.bytes) + ", left by a `cache prune` that was cut off",
               removal(entry.path, entry.inode, ""));
      continue;
    }
    const bool old = now - entry.used >= request.older_than;
    const bool too_much = !request.keep || left > *request.keep;
    if (!entry.in_use.empty() || !old || !too_much)
      continue;
    left -= entry.bytes;
    const std::string key = base_name(entry.path);
    const std::string of = entry.stands_for.empty() ? "" : ", for " + to_utf8(entry.stands_for);
    if (entry.note_inode != 0)
      plan.add_bookkeeping(entry.path, "the note of what it stands for",
                           removal(parent_path(entry.path) + "/.origin-" + key, entry.note_inode, ""));
    plan.add(entry.path, format_bytes(entry.bytes) + ", last used: " + age_of(entry, now) + of,
             removal(entry.path, entry.inode, left_name(key, entry.inode)));
  }
  return plan;
}

} // namespace sharefs::cachefix
