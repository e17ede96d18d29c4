#pragma once
// Works on whole directory trees by many threads, on descriptors. No link is followed and no mount in a tree is
// entered, even if others rename files meanwhile. Each function works in a child process, which is given up if it makes
// no progress for Options::deadline (the whole work may take longer), and stops at Ctrl-C (`interrupted`).
#include "base/argv.hpp"
#include "base/result.hpp"
#include "sys/process/user.hpp"
#include "sys/process/wire.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <vector>

namespace sharefs::tree {

/// A directory or a file. Only links of root and of the acting user are followed in its path (sys::Links::trusted).
struct Place {
  std::string path;         ///< absolute, as seen from inside the root
  std::string root = "/";   ///< see sys::Files
  bool guarded = false;     ///< error `permission` if somebody else could replace it, see sys::WalkRule
  std::string beneath = {}; ///< no link below this directory is followed, for example a user's home
  std::uint64_t device = 0; ///< expected device of the directory; 0: any; a different one is a `conflict`
  std::uint64_t inode = 0;  ///< expected inode, likewise
};

/// The finished work, and the total work if it is known (0: it is not known).
struct Progress {
  std::uint64_t files = 0, bytes = 0;
  std::uint64_t total_files = 0, total_bytes = 0;
  std::chrono::milliseconds took{0};

  /// Returns a text that fits a line of 80 columns: "12000/20625, 1.2/3.4 GiB, 850 files/s, 10 s left".
  [[nodiscard]] std::string text() const;
  friend bool operator==(const Progress&, const Progress&) = default;
};
template <FieldsOf<Progress> P> auto fields(P& p) {
  return named("files", p.files, "bytes", p.bytes, "total_files", p.total_files, "total_bytes", p.total_bytes);
}
/// Called in the parent, several times a second.
using OnProgress = std::function<void(const Progress&)>;

/// Decides whether an entry is copied: false leaves it out, with all below it; an error refuses it. Called in threads
/// of the child; `path` is relative to the tree.
using Admit = std::function<Result<bool>(const std::string& path, const struct stat& status)>;

struct Options {
  unsigned threads = 0;                        ///< 0: 32
  std::chrono::milliseconds deadline{120'000}; ///< the longest time without progress
  std::optional<sys::User> as = {};
  std::uint64_t total_files = 0, total_bytes = 0; ///< for Progress, as measure() found them
  // For copy() only:
  std::uint64_t bytes_per_second = 0; ///< 0: no limit; also for fetch()
  bool remove_others = false; ///< delete entries of the destination that the source does not have, instead of an error
  std::string leave = {};     ///< a name in `to` itself that does not belong to the copy and stays
  bool content_only =
      false;        ///< the copy belongs to this user, has modes 0600 and 0700 and new times, and is always made again
  Admit admit = {}; ///< also for set_modes()
  bool link_files = false; ///< regular files become hard links to the original; both must be on one mount
  Admit copy_instead = {}; ///< with link_files: true if the file must be copied, because programs write it in place
  bool own = false;        ///< the copy belongs to this user, whoever owns the original
  mode_t removed_mode_bits = 0; ///< bits that are removed from the modes of files and directories of the copy
  /// Also for fetch(): the user that root becomes before it opens the original, if the server refuses root
  /// (root_squash).
  std::optional<sys::User> reader = {};
  std::chrono::milliseconds wait{0}; ///< for fetch(): how long to wait for another fetch() of the same file
  std::string anew = {};             ///< for fetch(): the hint if the original has another content; may be empty
  std::string aside = {}; ///< for remove(): the directory first gets this name, so that half of it has its own no more
  bool layer = false;     ///< the original is the upper directory of an overlay, see copy()
};

struct CopyReport {
  std::uint64_t device = 0, inode = 0; ///< of the destination directory
  std::uint64_t files = 0, bytes = 0;  ///< regular files that were copied by this run; linked files are not counted
  std::uint64_t kept = 0;              ///< files that an earlier run has finished, and that have not changed
  friend bool operator==(const CopyReport&, const CopyReport&) = default;
};
template <FieldsOf<CopyReport> R> auto fields(R& r) {
  return named("device", r.device, "inode", r.inode, "files", r.files, "bytes", r.bytes, "kept", r.kept);
}

/// Copies the content of `from` to the directory `to`, which is made if it does not exist (its parent is not). The copy
/// keeps modes, owners if that is allowed (a group that cannot be set gets no more rights than all others), times to
/// the nanosecond, symbolic links, hard links within the tree, holes, extended attributes (user.*) and ACLs. Programs
/// with set-id bits or capabilities, devices, FIFOs, sockets and mounts in the tree are errors.
///
/// A file gets its name after it was written, synced, read again and found equal; a file that changed meanwhile is
/// copied once more. In a directory that this run has made, and that only its owner can enter until it is finished, a
/// file may have its name earlier, and gets its original's time when it is finished. All entries that can be copied are
/// copied; then the error has the number of the others and the first few names. An interrupted copy (Ctrl-C, SIGKILL, a
/// full disk) is continued by running it again: a file with its final name and the same size, time, mode and content is
/// kept. Error `busy`: another copy into `to` is running on this host.
///
/// A layer (Documentation/filesystems/overlayfs.rst of the kernel) contains the changes that were made on top of `to`.
/// Its entries replace those of `to`, its whiteouts remove them, and in an opaque directory all others are removed; all
/// other entries of `to` stay. Its marks are the xattrs trusted.overlay.*, which only root can read, or user.overlay.*,
/// and are not copied. It was made with redirect_dir=nofollow and metacopy=off (sys::Layers): otherwise it would
/// be incomplete without the layer below.
Result<CopyReport> copy(const Place& from, const Place& to, const Options& options, const OnProgress& progress = {});

/// Checksum and size of a file.
struct FileContent {
  std::string sha256; ///< 64 hexadecimal digits
  std::uint64_t bytes = 0;
  friend bool operator==(const FileContent&, const FileContent&) = default;
};
template <FieldsOf<FileContent> C> auto fields(C& c) {
  return named("sha256", c.sha256, "bytes", c.bytes);
}
/// Another node that has the file, or is fetching it now. The program prints the file from an offset on, which is
/// appended as its last argument.
struct Upstream {
  std::string name; ///< for messages
  Argv argv;
  std::optional<sys::User> as = {};
};
struct FetchReport {
  std::uint64_t bytes = 0;      ///< the bytes that were read by this run, from the original or an upstream
  std::uint64_t kept = 0;       ///< the bytes that an earlier run has left
  std::string by = {};          ///< name of the upstream that gave the last bytes; empty: the original
  std::string passed_over = {}; ///< the errors of the upstreams before it
  friend bool operator==(const FetchReport&, const FetchReport&) = default;
};
template <FieldsOf<FetchReport> R> auto fields(R& r) {
  return named("bytes", r.bytes, "kept", r.kept, "by", r.by, "passed_over", r.passed_over);
}
/// An id that chown(2) does not change.
inline constexpr std::uint32_t k_as_it_is = 0xFFFFFFFFU;
/// The owner, mode and time of a file.
struct FileAttributes {
  std::uint32_t uid = k_as_it_is, gid = k_as_it_is, mode = 0600;
  std::int64_t mtime = 0;
};
/// Copies one large file to this host's own disk. The directory of `to` must exist. The file gets the attributes
/// `given`; without them, only this user can read it.
/// It gets its name after its content was checked and synced. The kernel reads ahead, because each request takes a
/// round trip. An interrupted fetch() is continued where it has ended: the unfinished file lies beside `to` as
/// .NAME.part. If `to` has the right content already, it is kept; otherwise it is replaced by rename(2). Uses only
/// `deadline`, `as`, `reader`, `wait`, `anew` and `bytes_per_second` of `options`.
///
/// Upstreams are used before the original, in their order. An upstream that sends a wrong content, ends early, or sends
/// next to nothing for a sixth of `deadline` is passed over; the bytes before its end are kept. Errors: `conflict`: the
/// content of `from` is not the expected one, and nothing of it is kept; `busy`: another fetch() of `to` is running on
/// this host.
Result<FetchReport> fetch(const Place& from, const Place& to, const FileContent& content, const Options& options,
                          const OnProgress& progress = {}, const std::vector<Upstream>& upstreams = {},
                          const std::optional<FileAttributes>& given = {});

/// Gives the symbolic link to this owner and group.
Result<void> give_link(const Place& link, std::uint32_t uid, std::uint32_t gid);

/// The other end of an upstream. Writes the file `to` of fetch(), or its unfinished part, from `offset` on to the
/// descriptor `out`, and continues while the part grows, until all `bytes` are written. Errors: `not_found`: neither
/// exists within `timeout`; `timeout`: the part has not grown for so long.
Result<void> serve(const Place& file, std::uint64_t bytes, std::uint64_t offset, int out,
                   std::chrono::milliseconds timeout);

/// Deletes the directory with all its entries, or a file if `place` has its inode. Returns the number of removed names;
/// 0 if nothing exists there. Error `busy`: there is a mount in it.
Result<std::uint64_t> remove(const Place& place, const Options& options, const OnProgress& progress = {});

struct Measured {
  std::uint64_t files = 0;     ///< the number of names that are not directories
  std::uint64_t bytes = 0;     ///< sizes of regular files
  std::uint64_t allocated = 0; ///< space of regular files on the disk; a file with several names counts once
  std::int64_t used = 0;       ///< latest access or change of a file or directory, in seconds since 1970
  friend bool operator==(const Measured&, const Measured&) = default;
};
template <FieldsOf<Measured> M> auto fields(M& m) {
  return named("files", m.files, "bytes", m.bytes, "allocated", m.allocated, "used", m.used);
}
/// Adds up the tree. Directories that this user may not read are left out.
Result<Measured> measure(const Place& place, const Options& options);

struct Modes {
  std::uint32_t gid = k_as_it_is;
  std::uint32_t mode = 0755; ///< for directories; files get it without x, unless their owner may execute them
};
/// Sets group and mode of all entries of the tree, and of the directory itself. Symbolic links are left, and so are
/// files with names outside of the tree. Returns the number of entries that were changed.
Result<std::uint64_t> set_modes(const Place& place, const Modes& modes, const Options& options);

/// True if remove() would find the directory or file. Error `conflict`: it is another kind of entry, or not the inode
/// of `place`.
Result<bool> exists(const Place& place, const Options& options);

} // namespace sharefs::tree
