#include "cachefix/cache_store.hpp"

#include "base/path.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <dirent.h>
#include <fcntl.h>
#include <fts.h>
#include <memory>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

namespace sharefs::cachefix {
namespace {

constexpr std::size_t k_key_length = 12;

/// Hexadecimal digits: what cache_key makes. Nothing else below the directory is ours to list or delete.
bool is_key(const std::string& name) {
  return name.size() == k_key_length && std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return std::isdigit(c) != 0 || (c >= 'a' && c <= 'f');
         });
}

std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(directory.c_str()), ::closedir);
  while (open != nullptr) {
    const dirent* entry = ::readdir(open.get());
    if (entry == nullptr)
      break;
    names.emplace_back(entry->d_name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string link_text(const std::string& path) {
  std::string text(4096, '\0');
  const ssize_t length = ::readlink(path.c_str(), text.data(), text.size());
  text.resize(length < 0 ? 0 : static_cast<std::size_t>(length));
  return text;
}

std::string text_of(const std::string& path) {
  std::string out;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  char buffer[65536];
  for (ssize_t n = 0; fd >= 0 && (n = ::read(fd, buffer, sizeof buffer)) > 0;)
    out.append(buffer, static_cast<std::size_t>(n));
  if (fd >= 0)
    ::close(fd);
  return out;
}

/// The directory as /proc names it, where its own path goes through links.
std::string resolved(const std::string& directory) {
  const std::unique_ptr<char, void (*)(void*)> path(::realpath(directory.c_str(), nullptr), std::free);
  return path == nullptr ? directory : path.get();
}

/// Keys of caches that some live process uses: by open files, mapped files (datasets maps its tables), directories, and
/// by its arguments and environment, which name what it will open.
std::set<std::string> keys_in_use(const std::string& root) {
  std::set<std::string> keys;
  const std::set<std::string> roots{root + "/", resolved(root) + "/"};
  const auto note = [&](std::string_view text) {
    for (const std::string& start : roots)
      for (std::size_t at = text.find(start); at != std::string_view::npos; at = text.find(start, at + 1))
        keys.insert(std::string(text.substr(at + start.size(), k_key_length)));
  };
  for (const std::string& pid : names_in("/proc")) {
    if (pid.empty() || std::isdigit(static_cast<unsigned char>(pid[0])) == 0)
      continue;
    const std::string process = "/proc/" + pid;
    note(link_text(process + "/cwd"));
    for (const std::string& fd : names_in(process + "/fd"))
      note(link_text(process + "/fd/" + fd));
    for (const char* file : {"/maps", "/cmdline", "/environ"})
      note(text_of(process + file));
  }
  return keys;
}

using Tree = std::unique_ptr<FTS, int (*)(FTS*)>;
Tree open_tree(const std::string& path) {
  std::string copy = path;
  char* roots[] = {copy.data(), nullptr};
  return {::fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, nullptr), ::fts_close};
}

void measure(CacheEntry& entry) {
  const Tree tree = open_tree(entry.path);
  entry.measured = tree != nullptr;
  while (tree != nullptr) {
    const FTSENT* one = ::fts_read(tree.get());
    if (one == nullptr)
      break;
    if (one->fts_info != FTS_F && one->fts_info != FTS_D)
      continue;
    entry.bytes += one->fts_info == FTS_F ? static_cast<std::uint64_t>(one->fts_statp->st_blocks) * 512U : 0U;
    entry.used = std::max({entry.used, static_cast<std::int64_t>(one->fts_statp->st_mtime),
                           static_cast<std::int64_t>(one->fts_statp->st_atime)});
  }
}

} // namespace

Result<std::vector<CacheEntry>> list_caches(const std::string& root, std::chrono::milliseconds deadline) {
  // In a child for the deadline's sake: a cache can have millions of files. Fields by NUL, none can hold one.
  const auto wire = sys::in_child(std::nullopt, deadline, [&]() -> Result<std::string> {
    const std::set<std::string> used = keys_in_use(root);
    std::string out;
    for (const std::string& name : names_in(root)) {
      if (!is_key(name))
        continue;
      CacheEntry entry;
      entry.path = root + "/" + name;
      struct stat status{};
      if (::lstat(entry.path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode))
        continue;
      measure(entry);
      out += entry.path + '\0' + std::string(trim(text_of(root + "/.origin-" + name))) + '\0' +
             std::to_string(entry.bytes) + '\0' + std::to_string(entry.used) + '\0' +
             (used.contains(name) ? "1" : "0") + '\0' + (entry.measured ? "1" : "0") + '\0';
    }
    return out;
  });
  if (!wire)
    return fail(wire.error());
  std::vector<CacheEntry> entries;
  const auto fields = split(*wire, '\0');
  for (std::size_t i = 0; i + 5 < fields.size(); i += 6)
    entries.push_back({fields[i], fields[i + 1], std::stoull(fields[i + 2]), std::stoll(fields[i + 3]),
                       fields[i + 4] == "1", fields[i + 5] == "1"});
  return entries;
}

std::vector<CacheEntry> choose_to_prune(std::vector<CacheEntry> entries, const PruneRequest& request,
                                        std::int64_t now) {
  std::sort(entries.begin(), entries.end(), [](const CacheEntry& a, const CacheEntry& b) { return a.used < b.used; });
  std::uint64_t left = 0;
  for (const CacheEntry& entry : entries)
    left += entry.bytes;
  std::vector<CacheEntry> chosen;
  for (const CacheEntry& entry : entries) {
    const bool old = now - entry.used >= request.older_than;
    const bool too_much = !request.keep || left > *request.keep;
    if (entry.in_use || !entry.measured || !old || !too_much)
      continue;
    left -= entry.bytes;
    chosen.push_back(entry);
  }
  return chosen;
}

Result<void> remove_cache(const std::string& root, const CacheEntry& entry, std::chrono::milliseconds deadline) {
  const std::string name = base_name(entry.path);
  if (entry.path != root + "/" + name || !is_key(name))
    return fail(ErrorCode::failed, entry.path + ": not a cache of sharefs");
  const auto done = sys::in_child(std::nullopt, deadline, [&]() -> Result<std::string> {
    // Looked at once more: a job may have begun to use it since it was listed.
    if (keys_in_use(root).contains(name))
      return fail(ErrorCode::busy, entry.path + ": a process has begun to use it", "prune again when the job is over");
    const Tree tree = open_tree(entry.path);
    if (tree == nullptr)
      return fail(errno_error(errno, entry.path));
    while (FTSENT* one = ::fts_read(tree.get())) {
      if (one->fts_info == FTS_D)
        continue;
      const bool directory = one->fts_info == FTS_DP || one->fts_info == FTS_DNR;
      if (::unlinkat(AT_FDCWD, one->fts_path, directory ? AT_REMOVEDIR : 0) != 0 && errno != ENOENT)
        return fail(errno_error(errno, one->fts_path));
    }
    ::unlink((root + "/.origin-" + name).c_str());
    return std::string();
  });
  if (!done)
    return fail(done.error());
  return {};
}

} // namespace sharefs::cachefix
