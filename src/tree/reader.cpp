#include "tree/reader.hpp"

#include "base/parallel.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "sys/fs/extended_attributes.hpp"
#include "tree/attributes.hpp"
#include "tree/job.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <fmt/format.h>
#include <mutex>
#include <sys/sysmacros.h>

namespace sharefs::tree {

namespace {

constexpr std::size_t k_read_piece = 256U << 10U;

/// Reads the status of `name`, or of the descriptor itself (""), without the access time. For that an NFS client asks
/// the server again after each read, while all other attributes came with the data.
bool read_status(int place, const char* name, struct statx& status) {
  constexpr unsigned k_wanted = STATX_BASIC_STATS & ~static_cast<unsigned>(STATX_ATIME);
  return ::statx(place, name, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, k_wanted, &status) == 0;
}

void fill_status(Entry& entry, const struct statx& status) {
  entry.mode = status.stx_mode;
  entry.uid = status.stx_uid;
  entry.gid = status.stx_gid;
  entry.size = status.stx_size;
  entry.links = status.stx_nlink;
  entry.device = makedev(status.stx_dev_major, status.stx_dev_minor);
  entry.inode = status.stx_ino;
  entry.mtime = status.stx_mtime.tv_sec;
  entry.mtime_ns = status.stx_mtime.tv_nsec;
  entry.changed = status.stx_ctime.tv_sec * 1'000'000'000 + status.stx_ctime.tv_nsec;
}

/// True if it is the listed file, and everybody who may use that by its listed mode (narrow_modes()) may use this.
bool is_listed(const Entry& listed, const struct statx& status) {
  Entry now;
  fill_status(now, status);
  return now.device == listed.device && now.inode == listed.inode && now.uid == listed.uid && now.gid == listed.gid &&
         (listed.mode & ~now.mode) == 0 && now.size == listed.size;
}

/// The number of entries and bytes that all threads together may still list.
struct ListingLimit {
  std::atomic<std::int64_t> entries, text;
  bool take(const Entry& entry) {
    const auto bytes = static_cast<std::int64_t>(entry.path.size() + entry.target.size());
    return entries.fetch_sub(1) > 0 && text.fetch_sub(bytes) > 0;
  }
};

/// Lists one directory. Returns 0 or errno; EFBIG: the limit is reached.
int list_directory(int tree, const std::string& path, const sys::ProgressCounters& counters, ListingLimit& limit,
                   std::vector<Entry>& found) {
  auto fd = open_below(tree, path.empty() ? "." : path.c_str());
  if (!fd)
    return errno;
  return sys::for_each_name(std::move(fd), [&](int here, const dirent& one) {
    Entry entry;
    entry.path = path.empty() ? one.d_name : path + "/" + one.d_name;
    struct statx status{};
    if (!read_status(here, one.d_name, status)) {
      if (errno == ENOENT)
        return 0;
      entry.error_number = errno;
    } else {
      fill_status(entry, status);
      const auto target = S_ISLNK(status.stx_mode) ? sys::read_link(here, one.d_name) : std::optional<std::string>("");
      entry.target = target.value_or("");
      entry.error_number = target ? 0 : errno;
    }
    counters.add(k_steps);
    if (!limit.take(entry))
      return EFBIG;
    found.push_back(std::move(entry));
    return 0;
  });
}

} // namespace

sys::FileIdentity identity_of(const Entry& entry) {
  return {entry.device, entry.inode, entry.uid, entry.gid, entry.mode & S_IFMT, entry.changed};
}

Result<Reader> Reader::open(const sys::Files& files, const std::string& path, const sys::ProgressCounters& counters) {
  TRY_ASSIGN(const auto found, sys::walk_from(files.root(), path, {.follow_last = true}));
  if (!found.exists())
    return fail(ErrorCode::not_found, "there is no directory " + path);
  if (!found.is_directory())
    return fail(ErrorCode::not_found, path + " is no directory");
  sys::Fd directory(::openat(found.fd.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)); // `.` enters a mount on it
  struct stat status{};
  if (!directory || ::fstat(directory.get(), &status) != 0)
    return fail(errno_error(errno, path));
  return Reader(std::move(directory), status, counters);
}

Result<Reader> Reader::open(const Place& place, const sys::ProgressCounters& counters) {
  TRY_ASSIGN(auto found, find_tree(place));
  return Reader(std::move(found.fd), found.status, counters);
}

Result<std::vector<Entry>> Reader::list(std::size_t most) const {
  ListingLimit limit{static_cast<std::int64_t>(most), static_cast<std::int64_t>(k_most_text)};
  std::vector<Entry> all;
  std::mutex mutex;
  Workers workers;
  const std::function<void(const std::string&)> list_below = [&](const std::string& directory) {
    std::vector<Entry> found;
    if (const int error = list_directory(m_directory.get(), directory, m_counters, limit, found); error != 0)
      found.push_back({.path = directory, .error_number = error});
    for (const auto& entry : found)
      if (limit.entries >= 0 && S_ISDIR(entry.mode) && entry.error_number == 0)
        workers.add([&list_below, path = entry.path] { list_below(path); });
    const std::lock_guard lock(mutex);
    std::ranges::move(found, std::back_inserter(all));
  };
  workers.add([&] { list_below(""); });
  workers.run(k_threads);
  if (limit.entries < 0 || limit.text < 0)
    return fail(ErrorCode::failed, fmt::format("it holds more than {} files, or names and links of more than {}", most,
                                               format_bytes(k_most_text)));
  std::ranges::sort(all, {}, &Entry::path);
  return all;
}

void Reader::narrow_modes(std::vector<Entry>& entries) {
  m_status.st_mode = sys::mode_by_acl(m_directory.get(), m_status.st_mode, &m_withheld);
  in_parallel(entries.size(), [&](std::size_t number) {
    auto& entry = entries[number];
    constexpr mode_t k_group_and_others = S_IRWXG | S_IRWXO;
    if (S_ISLNK(entry.mode) || entry.error_number != 0 || (entry.mode & k_group_and_others) == 0)
      return;
    const auto fd = open_below(m_directory.get(), entry.path.c_str(), O_PATH);
    entry.mode = fd ? sys::mode_by_acl(fd.get(), entry.mode, &entry.withheld) : mode_without_group(entry.mode);
    m_counters.add(k_steps);
  });
}

void Reader::recall_delegations(std::vector<Entry>& entries) const {
  constexpr std::int64_t k_recent = 600; // seconds
  const auto now = ::time(nullptr);
  in_parallel(entries.size(), [&](std::size_t number) {
    auto& entry = entries[number];
    if (!S_ISREG(entry.mode) || std::abs(now - entry.mtime) > k_recent)
      return;
    struct statx status{};
    const auto fd = open_below(m_directory.get(), entry.path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY);
    if (fd && ::statx(fd.get(), "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, &status) == 0)
      fill_status(entry, status);
    m_counters.add(k_steps);
  });
}

int Reader::read(const std::string& path, const std::function<bool(std::string_view piece)>& visit,
                 const Entry* listed) const {
  return read(path, k_read_piece, visit, listed);
}

int Reader::read(const std::string& path, std::size_t at_once, const std::function<bool(std::string_view piece)>& visit,
                 const Entry* listed) const {
  const auto fd = open_below(m_directory.get(), path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY);
  struct statx before{}, after{};
  if (!fd || !read_status(fd.get(), "", before))
    return errno;
  if (!S_ISREG(before.stx_mode))
    return EINVAL;
  if (listed != nullptr && !is_listed(*listed, before))
    return ESTALE;
  m_counters.add(k_files);
  const auto piece = buffer().first(std::min(at_once, k_read_piece));
  for (auto left = static_cast<std::int64_t>(before.stx_size); left > 0;) {
    const auto length = ::read(fd.get(), piece.data(), piece.size());
    if (length < 0 && errno == EINTR)
      continue;
    if (length < 0)
      return errno;
    if (length == 0)
      break;
    left -= length; // a file that has grown is noticed by its size below
    m_counters.add(k_bytes, static_cast<std::uint64_t>(length));
    if (!visit({piece.data(), static_cast<std::size_t>(length)}))
      return 0;
  }
  if (!read_status(fd.get(), "", after))
    return errno;
  const bool same = after.stx_size == before.stx_size && after.stx_mtime.tv_sec == before.stx_mtime.tv_sec &&
                    after.stx_mtime.tv_nsec == before.stx_mtime.tv_nsec;
  return same ? 0 : ESTALE;
}

int Reader::read(const std::string& path, std::size_t limit, std::string& into, const Entry* listed) const {
  into.clear();
  return read(
      path, std::max<std::size_t>(limit, 1),
      [&](std::string_view piece) {
        into.append(piece.substr(0, limit - into.size()));
        return into.size() < limit;
      },
      listed);
}

void in_parallel(std::size_t count, const std::function<void(std::size_t)>& work) {
  sharefs::in_parallel(count, k_threads, work);
}

} // namespace sharefs::tree
