#include "tree/job.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "sys/fs/file_identity.hpp"
#include "sys/fs/sha256.hpp"
#include "sys/process/become.hpp"

#include <algorithm>
#include <cerrno>
#include <fmt/format.h>
#include <limits>
#include <linux/capability.h>
#include <thread>

namespace sharefs::tree {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t k_most_named = 5;

/// True for an error that every following file would get as well.
bool is_fatal(int error) {
  return error == ENOSPC || error == EDQUOT || error == EROFS || error == EMFILE || error == ENFILE ||
         error == ENOMEM || error == ESTALE || error == ENODEV;
}

bool is_expected(const Place& place, const struct stat& status) {
  return place.inode == 0 || (status.st_ino == place.inode && (place.device == 0 || status.st_dev == place.device));
}

} // namespace

Error error_in_tree(int error_number, const std::string& path) {
  return error_number == EXDEV
             ? Error{ErrorCode::busy, path + ": something is mounted there, and it is left", "unmount it first", ""}
             : errno_error(error_number, path);
}

void Job::failed(int error_number, const std::string& path) {
  auto error = error_in_tree(error_number, path);
  if (error_number == ENOSPC || error_number == EDQUOT)
    error.hint += ": it goes on from here";
  if (is_fatal(error_number))
    stop(std::move(error));
  else
    failed(std::move(error));
}

void Job::failed(Error error) {
  const std::lock_guard lock(m_mutex);
  if (m_failures++ == 0)
    m_first = std::move(error);
  else if (m_named.size() < k_most_named)
    m_named.push_back(error.message);
}

void Job::stop(Error error) {
  {
    const std::lock_guard lock(m_mutex); // this error replaces the first one, because it ends the work
    if (m_failures++ > 0 && m_named.size() < k_most_named)
      m_named.push_back(m_first.message);
    m_first = std::move(error);
  }
  workers.stop();
}

Result<void> Job::result() const {
  const std::lock_guard lock(m_mutex);
  if (m_failures == 0)
    return {};
  auto error = m_first;
  if (m_failures > 1)
    error.message += fmt::format(" (and {} more)", m_failures - 1);
  error.context = join(m_named, "\n");
  return fail(std::move(error));
}

Result<void> become_reader(const Options& options) {
  const auto& reader = options.reader;
  constexpr unsigned k_kept = 1U << CAP_DAC_OVERRIDE | 1U << CAP_CHOWN | 1U << CAP_FOWNER | 1U << CAP_FSETID;
  const int error = reader ? sys::become(*reader, k_kept) : 0;
  return error == 0 ? Result<void>{} : fail(errno_error(error, "cannot become " + reader->name));
}

void Job::wait_for(std::uint64_t bytes) {
  if (options.bytes_per_second == 0)
    return;
  const auto takes = std::chrono::duration_cast<sys::Clock::duration>(
      std::chrono::duration<double>(static_cast<double>(bytes) / static_cast<double>(options.bytes_per_second)));
  sys::Deadline mine;
  {
    const std::lock_guard lock(m_mutex);
    m_next_write = std::max(m_next_write, sys::Clock::now()) + takes;
    mine = m_next_write;
  }
  for (auto now = sys::Clock::now(); now < mine; now = sys::Clock::now()) {
    std::this_thread::sleep_until(std::min(mine, now + 100ms));
    counters.add(k_steps); // waiting for the limit counts as progress
  }
}

int FlushingWriter::write(std::string_view data, std::uint64_t at) {
  constexpr std::uint64_t k_window = 16U << 20U;
  for (; !data.empty();) {
    const ssize_t count = ::pwrite(m_file, data.data(), data.size(), static_cast<off_t>(at));
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return count == 0 ? EIO : errno;
    data.remove_prefix(static_cast<std::size_t>(count));
    at += static_cast<std::uint64_t>(count);
  }
  if (at < m_flushed + k_window)
    return 0;
  // While this window is being written, the one before it is waited for. fsync(2) reports errors later.
  ::sync_file_range(m_file, static_cast<off_t>(m_flushed), static_cast<off_t>(at - m_flushed), SYNC_FILE_RANGE_WRITE);
  if (m_flushed > 0) // a length of 0 bytes would mean the whole file
    ::sync_file_range(m_file, 0, static_cast<off_t>(m_flushed), SYNC_FILE_RANGE_WAIT_BEFORE);
  m_flushed = at;
  return 0;
}

std::span<char> buffer() {
  constexpr std::size_t k_size = 1U << 20U;
  thread_local const auto bytes = std::make_unique_for_overwrite<char[]>(k_size); // NOLINT: its size is fixed
  return {bytes.get(), k_size};
}

sys::Fd open_without_atime(int parent, const char* name) {
  auto fd = open_below(parent, name, O_RDONLY | O_DIRECTORY | O_NOATIME);
  if (!fd && errno == EPERM) // only the owner and root may use O_NOATIME
    fd = open_below(parent, name);
  return fd;
}

int read_names(int directory, std::vector<Name>& into) {
  sys::Fd same(::fcntl(directory, F_DUPFD_CLOEXEC, 0)); // it shares the position, which is set to the beginning below
  if (!same || ::lseek(directory, 0, SEEK_SET) < 0)
    return errno;
  return sys::for_each_name(std::move(same), [&into](int here, const dirent& entry) {
    auto type = entry.d_type;
    struct stat status{};
    if (type == DT_UNKNOWN) {
      if (::fstatat(here, entry.d_name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? 0 : errno;
      type = static_cast<unsigned char>(IFTODT(status.st_mode));
    }
    into.push_back({entry.d_name, type});
    return 0;
  });
}

Result<sys::Walked> walk_to(const Place& place) {
  const auto path = normalize_path(place.path);
  if (place.path.empty() || place.path.front() != '/' || path == "/")
    return fail(ErrorCode::failed, "`" + place.path + "` is not a path that sharefs can act on");
  TRY_ASSIGN(auto walked,
             sys::walk_from(place.root, path,
                            {.links = sys::Links::trusted, .beneath = place.beneath, .guarded = place.guarded}));
  if (walked.not_directory)
    return fail(errno_error(ENOTDIR, place.path));
  return walked;
}

Result<sys::Fd> open_file(const Place& place) {
  TRY_ASSIGN(const auto walked, walk_to(place));
  sys::Fd file(walked.exists() ? ::openat(walked.directory.get(), walked.name.c_str(),
                                          O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
                               : -1);
  return file ? Result<sys::Fd>(std::move(file)) : fail(errno_error(walked.exists() ? errno : ENOENT, place.path));
}

int read_file(int file, std::uint64_t at, std::uint64_t end, const std::function<bool(std::string_view piece)>& take) {
  const auto bytes = buffer();
  while (at < end) {
    const auto count =
        ::pread(file, bytes.data(), std::min<std::uint64_t>(end - at, bytes.size()), static_cast<off_t>(at));
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return errno;
    if (count == 0 || !take({bytes.data(), static_cast<std::size_t>(count)}))
      break;
    at += static_cast<std::uint64_t>(count);
  }
  return 0;
}

Result<FileContent> hash_file(int file, const std::string& path, const sys::ProgressCounters& counters, Counted counted,
                              std::string_view magic) {
  FileContent content;
  sys::Sha256 hash;
  const int error = read_file(file, 0, std::numeric_limits<off_t>::max(), [&](std::string_view piece) {
    if (content.bytes == 0 && !piece.starts_with(magic))
      return false;
    hash.add(piece);
    content.bytes += piece.size();
    counters.add(counted, piece.size());
    return true;
  });
  content.sha256 = hash.hex();
  return error == 0 ? Result<FileContent>(std::move(content)) : fail(errno_error(error, path));
}

Result<Found> find(const Place& place, bool or_file) {
  TRY_ASSIGN(auto walked, walk_to(place));
  Found found{std::move(walked), {}, {}};
  if (!found.walked.exists())
    return found;
  found.status = found.walked.status;
  if (or_file && S_ISREG(found.status.st_mode) && place.inode != 0 && is_expected(place, found.status)) {
    found.fd = std::move(found.walked.fd);
    return found;
  }
  if (!found.walked.is_directory())
    return fail(sys::conflict_error(place.path, "a directory", found.walked.text()));
  // The walk may have crossed mounts. Opening `.` gives the directory of the mount if one is mounted on the path.
  found.fd = open_without_atime(found.walked.fd.get(), ".");
  if (!found.fd || ::fstat(found.fd.get(), &found.status) != 0)
    return fail(errno_error(errno, place.path));
  if (!is_expected(place, found.status))
    return fail(sys::conflict_error(place.path, "the directory that the plan was made for", "another one"));
  return found;
}

Result<Found> find_tree(const Place& place) {
  auto found = find(place);
  if (found && !found->fd)
    return fail(errno_error(ENOENT, place.path));
  return found;
}

} // namespace sharefs::tree
