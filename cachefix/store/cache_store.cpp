#include "cachefix/store/cache_store.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "sys/fs/walk.hpp"
#include "sys/process/call.hpp"
#include "sys/process/child.hpp"
#include "sys/process/fd.hpp"
#include "tree/tree.hpp"

#include <algorithm>
#include <cctype>
#include <fcntl.h>
#include <filesystem>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

namespace sharefs::cachefix {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t k_key_length = 12;
constexpr std::size_t k_longest_origin = 4096;
constexpr std::size_t k_most_process_text = 64U << 20U;
constexpr std::chrono::seconds k_use_deadline{3};

/// Hexadecimal digits: what cache_key makes. Nothing else below the directory is ours to list or delete.
bool is_key(const std::string& name) {
  return name.size() == k_key_length && name.find_first_not_of("0123456789abcdef") == std::string::npos;
}

std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> names;
  (void)sys::list_names(sys::Fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)), names);
  std::ranges::sort(names);
  return names;
}

/// A regular file: nothing through a link, never a FIFO, and not without end. Empty if it is none, or too long.
std::string text_of(const std::string& path, std::size_t limit) {
  const sys::Fd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
  struct stat status{};
  if (!fd || ::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode))
    return {};
  std::string out;
  (void)sys::read_all(fd.get(), out, limit + 1); // as much of it as there is
  return out.size() <= limit ? out : std::string();
}

/// Keys of caches that some live process uses: by open files, mapped files (datasets maps its tables), directories, and
/// by its arguments and environment, which name what it will open. Nobody else but root can use what is this user's.
std::vector<std::string> keys_in_use(const std::vector<CacheEntry>& entries) {
  std::set<std::string> keys, roots;
  std::error_code error;
  for (const CacheEntry& entry : entries) {
    const std::string root = parent_path(entry.path);
    if (!roots.insert(root + "/").second)
      continue;
    const fs::path real = fs::canonical(root, error); // as /proc names it, where its own path goes through links
    roots.insert((error ? root : real.native()) + "/");
  }
  const auto note = [&](std::string_view text) {
    for (const std::string& start : roots)
      for (std::size_t at = text.find(start); at != std::string_view::npos; at = text.find(start, at + 1))
        keys.insert(std::string(text.substr(at + start.size(), k_key_length)));
  };
  for (const std::string& pid : names_in("/proc")) {
    const std::string process = "/proc/" + pid;
    struct stat status{};
    if (std::isdigit(static_cast<unsigned char>(pid[0])) == 0 || ::stat(process.c_str(), &status) != 0 ||
        (status.st_uid != ::geteuid() && status.st_uid != 0))
      continue;
    note(fs::read_symlink(process + "/cwd", error).native());
    for (const std::string& fd : names_in(process + "/fd"))
      note(fs::read_symlink(process + "/fd/" + fd, error).native());
    for (const char* file : {"/maps", "/cmdline", "/environ"}) // wait for the process's memory, which may be locked
      note(text_of(process + file, k_most_process_text));
  }
  return {keys.begin(), keys.end()};
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
    if (!measured) // it has gone meanwhile
      continue;
    const std::string note = found[i + 1].size <= k_longest_origin ? found[i + 1].content : "";
    caches.push_back({.path = cache.path,
                      .stands_for = note.substr(0, note.find('\n')),
                      .bytes = measured->allocated,
                      .used = measured->used,
                      .device = cache.device,
                      .inode = cache.inode});
  }
  note_uses(caches); // last, because measuring takes its time
  return caches;
}

void note_uses(std::vector<CacheEntry>& entries) {
  using Keys = Result<std::vector<std::string>>;
  const Keys used = sys::call(std::nullopt, k_use_deadline, // a process can hang
                              [&]() -> Keys { return keys_in_use(entries); });
  for (CacheEntry& entry : entries)
    entry.in_use = !used                                                      ? "a process could not be checked"
                   : std::ranges::binary_search(*used, base_name(entry.path)) ? "in use"
                                                                              : "";
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
                                             entry.stands_for + "\n", 0600));
  }
  return plan;
}

} // namespace sharefs::cachefix
