#include "sys/fs/read_entry.hpp"
#include "sys/fs/extended_attributes.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "sys/fs/exclusive.hpp"
#include "sys/identity/identity.hpp"
#include "sys/process/child.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <sys/statfs.h>

namespace sharefs::sys {
namespace {

using Step = std::function<void(std::string_view)>; ///< called with the name of the next system call

EntryKind kind_of(mode_t mode) {
  if (S_ISREG(mode))
    return EntryKind::file;
  if (S_ISDIR(mode))
    return EntryKind::directory;
  return S_ISLNK(mode) ? EntryKind::symlink : EntryKind::other;
}

void fill(Entry& entry, const struct stat& status) {
  entry.kind = kind_of(status.st_mode);
  entry.mode = status.st_mode & 07777;
  entry.uid = status.st_uid;
  entry.gid = status.st_gid;
  entry.size = static_cast<std::uint64_t>(status.st_size);
  entry.device = status.st_dev;
  entry.inode = status.st_ino;
  entry.links = status.st_nlink;
  entry.allocated = static_cast<std::uint64_t>(status.st_blocks) * S_BLKSIZE;
  entry.mtime = status.st_mtim.tv_sec;
  entry.mtime_ns = status.st_mtim.tv_nsec;
}

/// Opens the entry that the walk found for reading; ESTALE if the name leads to something else by now.
Fd open_found(const Walked& found, int flags) {
  Fd fd(::openat(found.directory.get(), found.name.c_str(),
                 O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC | flags));
  struct stat status{};
  if (!fd || ::fstat(fd.get(), &status) != 0)
    return Fd();
  if (status.st_dev == found.status.st_dev && status.st_ino == found.status.st_ino)
    return fd;
  errno = ESTALE;
  return Fd();
}

/// Creates a new file, and replaces one that a killed test has left there.
Fd create_probe_file(int directory, const std::string& name) {
  Fd file = create_file(directory, name, 0600, O_RDWR);
  if (!file && errno == EEXIST && ::unlinkat(directory, name.c_str(), 0) == 0)
    file = create_file(directory, name, 0600, O_RDWR);
  return file;
}

/// Fills in Entry::made with the owner and time that the server has set.
void fill_made(int file, std::chrono::system_clock::time_point started, Entry& entry) {
  using namespace std::chrono;
  struct stat status{};
  if (::fstat(file, &status) != 0)
    return;
  const auto ended = system_clock::now();
  const system_clock::time_point written(seconds(status.st_mtim.tv_sec) +
                                         duration_cast<system_clock::duration>(nanoseconds(status.st_mtim.tv_nsec)));
  entry.made = TestFile{status.st_uid, duration_cast<milliseconds>(written < started ? written - started
                                                                   : written > ended ? written - ended
                                                                                     : system_clock::duration(0))};
}

/// Writes a file, syncs it, reads it back, compares and deletes it. Returns 0 or errno; EIO if the bytes differ.
int test_writing(int directory, const Step& begin, Entry& entry) {
  const std::string name = ".sharefs-probe-" + own_name() + "-" + std::to_string(::geteuid());
  const std::string content = name + "\n";
  begin("create");
  const auto started = std::chrono::system_clock::now();
  const Fd file = create_probe_file(directory, name);
  if (!file)
    return errno;
  const int error = [&] {
    begin("write");
    if (!write_all(file.get(), content))
      return errno;
    begin("fsync");
    if (::fsync(file.get()) != 0)
      return errno;
    fill_made(file.get(), started, entry);
    begin("read");
    // The pages are dropped from this host's cache, so that the read goes to the server.
    ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
    std::string back(content.size() + 1, '\0');
    const ssize_t size = ::pread(file.get(), back.data(), back.size(), 0);
    if (size < 0)
      return errno;
    back.resize(static_cast<std::size_t>(size));
    begin("compare");
    return back == content ? 0 : EIO;
  }();
  if (error == 0)
    begin("delete");
  // ENOENT is no error: another test of this host and user has removed the file as a leftover.
  if (::unlinkat(directory, name.c_str(), 0) != 0 && errno != ENOENT && error == 0)
    return errno;
  return error;
}

/// Makes the note if the directory lies two levels below Note::above.
void leave_note(const Note& note, const Walked& found, Entry& entry) {
  if (base_name(parent_path(parent_path(found.resolved))) != note.above)
    return;
  const Fd directory = open_below(found.directory.get(), note.directory.c_str(), O_PATH | O_DIRECTORY);
  const auto name = note.name + "." + found.name;
  if (make_note(directory.get(), name))
    entry.made.emplace();
}

int read_space(int fd, Entry& entry) {
  struct statfs info{};
  const auto begin = Clock::now();
  if (::fstatfs(fd, &info) != 0)
    return errno;
  const auto block = static_cast<std::uint64_t>(info.f_frsize != 0 ? info.f_frsize : info.f_bsize);
  entry.space = Space{std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begin),
                      block * info.f_blocks, block * info.f_bavail, info.f_files, info.f_ffree};
  return 0;
}

/// Reads the names in a directory. Their number is limited, because others may have made any number of names: EFBIG,
/// with the names that were read so far.
int read_names(const Walked& found, Entry& entry) {
  constexpr std::size_t k_most_names = 200'000;
  const int error = for_each_name(open_found(found, O_DIRECTORY), [&entry](int, const dirent& one) {
    if (entry.names.size() == k_most_names)
      return EFBIG;
    entry.names.emplace_back(one.d_name);
    return 0;
  });
  std::sort(entry.names.begin(), entry.names.end());
  return error;
}

int read_content(const Walked& found, std::size_t limit, Entry& entry) {
  const Fd fd = open_found(found, 0);
  return fd ? read_all(fd.get(), entry.content, limit) : errno;
}

/// Does all that the query asks for an existing entry. Returns 0 or errno; `begin` is called before each step.
int read_more(const EntryQuery& query, const Walked& found, const Step& begin, Entry& entry) {
  int error = 0;
  if (query.note && entry.kind == EntryKind::directory)
    leave_note(*query.note, found, entry);
  if (query.space) {
    begin("statfs");
    error = read_space(found.fd.get(), entry);
  }
  if (error == 0 && query.list && entry.kind == EntryKind::directory) {
    begin("listing");
    error = read_names(found, entry);
  }
  if (error == 0 && query.read_bytes > 0 && entry.kind == EntryKind::file) {
    begin("reading");
    error = read_content(found, query.read_bytes, entry);
  }
  if (query.acl)
    entry.mode = mode_by_acl(found.fd.get(), entry.mode, &entry.withheld);
  if (error == 0 && query.access)
    entry.writable = ::faccessat(found.directory.get(), found.name.c_str(), W_OK | X_OK, AT_EACCESS) == 0;
  if (error == 0 && query.write_test) {
    begin("opening");
    const Fd directory = open_found(found, O_DIRECTORY);
    error = directory ? test_writing(directory.get(), begin, entry) : errno;
  }
  return error;
}

/// Asks the server for the attributes of the directory that contains the name, and of the directories that contain the
/// links it leads to, so that the client looks these names up again. The directory itself is also asked if no link
/// leads to it, or if its names are wanted. Returns 0 or errno.
int refresh(int root, const EntryQuery& query, const MountTargets& stop_at) {
  constexpr int k_most_links = 8;
  int error = 0;
  const auto ask = [&error](const Fd& directory) {
    struct statx now{};
    if (error == 0 && directory && !ask_attributes([&] {
          return ::statx(directory.get(), "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, &now) == 0;
        }))
      error = errno;
  };
  std::string path = query.path;
  for (int links = 0; links < k_most_links && path.starts_with('/') && error == 0; ++links) {
    const auto found = walk(root, path, {.links = query.links, .stop_at = &stop_at});
    if (!found)
      break; // the caller's own walk ends with the same error
    const bool by_link = links > 0;
    if (!by_link || !found->link.empty())
      ask(found->directory);
    if (found->is_directory() && (!by_link || query.list))
      ask(found->fd);
    path = query.follow ? found->link : "";
  }
  return error;
}

Entry read_once(int root, const EntryQuery& query, const MountTargets& stop_at,
                const std::function<void(std::string_view)>& begin_step) {
  Entry entry;
  entry.path = query.path;
  entry.resolved = normalize_path(query.path);
  std::string step = "looking";
  const Step begin = [&](std::string_view next) {
    step = next;
    if (begin_step)
      begin_step(next);
  };
  if (query.fresh) {
    begin("asking the server");
    entry.error_number = refresh(root, query, stop_at);
    if (entry.error_number != 0) {
      entry.detail = step + ": " + errno_text(entry.error_number);
      return entry;
    }
  }
  const auto found = walk(root, query.path,
                          {.links = query.links,
                           .follow_last = query.follow,
                           .guarded = query.guarded,
                           .stop_at = &stop_at,
                           .wants_directory = !query.space || query.list || query.read_bytes > 0 || query.access ||
                                              query.acl || query.write_test || query.note});
  if (!found) {
    entry.error_number = found.error().may_hang ? EREMOTE : found.error().error_number;
    entry.resolved = found.error().resolved;
    entry.detail =
        found.error().may_hang || found.error().reason.empty() ? errno_text(entry.error_number) : found.error().reason;
    return entry;
  }
  entry.resolved = found->resolved;
  entry.ancestor = found->ancestor;
  if (!found->exists()) {
    entry.kind = EntryKind::missing;
    entry.error_number = found->not_directory ? ENOTDIR : ENOENT;
    return entry;
  }
  fill(entry, found->status);
  entry.link_target = found->link;
  entry.error_number = read_more(query, *found, begin, entry);
  if (entry.error_number != 0)
    entry.detail = step == "compare" ? "what was read back differs from what was written"
                                     : step + ": " + errno_text(entry.error_number);
  return entry;
}

} // namespace

Entry read_entry(int root, const EntryQuery& query, const MountTargets& stop_at,
                 const std::function<void(std::string_view)>& begin_step) {
  Entry entry = read_once(root, query, stop_at, begin_step);
  if (entry.exists() && entry.error_number == ESTALE) // it was replaced between walk and open, perhaps by another host
    entry = read_once(root, query, stop_at, begin_step);
  return entry;
}

bool Entry::hung() const {
  return error_number == ETIMEDOUT;
}

Error Entry::error() const {
  if (error_number == 0) { // the entry exists, but has another type than expected
    const auto what = kind == EntryKind::other ? "pipe, socket or device" : to_string(kind);
    return {ErrorCode::failed, path + ": is a " + what, {}, {}};
  }
  Error result = errno_error(error_number, path);
  if (!detail.empty())
    result.message = path + ": " + detail;
  if (hung())
    result.hint = "run `sharefs status`: it says which mount hangs";
  return result;
}

FileIdentity identity_of(const Entry& entry) {
  const std::uint32_t kind = entry.kind == EntryKind::file        ? S_IFREG
                             : entry.kind == EntryKind::directory ? S_IFDIR
                             : entry.kind == EntryKind::symlink   ? S_IFLNK
                                                                  : 0U;
  return {.device = entry.device, .inode = entry.inode, .uid = entry.uid, .gid = entry.gid, .kind = kind};
}

const char* to_string(EntryKind kind) {
  static constexpr std::array k_names{"missing", "file", "directory", "symlink", "other", "unknown"};
  return name_in(k_names, kind);
}

} // namespace sharefs::sys
