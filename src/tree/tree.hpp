#pragma once
// Whole directory trees, by many threads, on descriptors: nothing is followed, nothing that is mounted in them is
// entered, whatever others rename meanwhile. Each function works in a child process that is given up when it makes no
// progress for Options::deadline, however long the work takes, and stops at Ctrl-C (`interrupted`).
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

/// The way to a directory goes through links of root and of the acting user only (sys::Links::trusted).
struct Place {
  std::string path;         ///< absolute, as seen from inside the root
  std::string root = "/";   ///< see sys::Files
  bool guarded = false;     ///< `permission` where somebody else could replace it, see sys::WalkRule
  std::string beneath = {}; ///< no link is followed from here on: a user's home
  std::uint64_t device = 0; ///< of the directory, 0: any; another one there is a `conflict`
  std::uint64_t inode = 0;  ///< as `device`
};

/// What has been done, and what there is to do where that is known (0: it is not).
struct Progress {
  std::uint64_t files = 0, bytes = 0;
  std::uint64_t total_files = 0, total_bytes = 0;
  std::chrono::milliseconds took{0};

  /// "12000/20625, 1.2/3.4 GiB, 850 files/s, 10 s left": short, for a line of 80 columns
  [[nodiscard]] std::string text() const;
  friend bool operator==(const Progress&, const Progress&) = default;
};
template <FieldsOf<Progress> P> auto fields(P& p) {
  return named("files", p.files, "bytes", p.bytes, "total_files", p.total_files, "total_bytes", p.total_bytes);
}
/// Called in the parent, some times a second.
using OnProgress = std::function<void(const Progress&)>;

/// Whether something is to be copied: false leaves it out, with all below it, an error refuses it. In threads of the
/// child; `path` is relative to the tree.
using Admit = std::function<Result<bool>(const std::string& path, const struct stat& status)>;

struct Options {
  unsigned threads = 0; ///< 0: two for each processor; more where the file system is on a network
  std::chrono::milliseconds deadline{120'000}; ///< without any progress
  std::optional<sys::User> as = {};
  std::uint64_t total_files = 0, total_bytes = 0; ///< for Progress, as measure() found them
  // Of copy() only:
  std::uint64_t bytes_per_second = 0; ///< 0: no limit
  bool verify = true;                 ///< read each file again from the destination; without, what is there of an
                                      ///< earlier run is known by its size and time only
  bool remove_others = false;         ///< what the destination has and the source has not is deleted, not an error
  std::string leave = {};             ///< a name in `to` itself that is not of the copy, and stays
  bool content_only = false;          ///< the copy is the copier's own (0600, 0700), of now, and always made anew
  Admit admit = {};                   ///< of set_modes(), too
  bool link_files = false; ///< a regular file becomes one more name of the original, not a copy; all is on one mount
  Admit copy_instead = {}; ///< with link_files: true where tools write in place, and a copy is needed
  bool own = false;        ///< the copy belongs to the copier, whoever owns the original
  mode_t take_away = 0;    ///< bits of the modes of files and directories that the copy does not get
  /// Of fetch(), too: whom root becomes before it opens the original, where the server refuses root (root_squash).
  std::optional<sys::User> reader = {};
  std::chrono::milliseconds wait{0}; ///< of fetch(): for another one of the same file to end
  bool layer = false;                ///< the original is the upper directory of an overlay, see copy()
};

struct CopyReport {
  std::uint64_t device = 0, inode = 0; ///< of the directory that took the copies
  std::uint64_t files = 0, bytes = 0;  ///< regular files that were copied now, not those that were linked
  std::uint64_t kept = 0;              ///< finished by an earlier run, and still the same
  friend bool operator==(const CopyReport&, const CopyReport&) = default;
};
template <FieldsOf<CopyReport> R> auto fields(R& r) {
  return named("device", r.device, "inode", r.inode, "files", r.files, "bytes", r.bytes, "kept", r.kept);
}

/// Copies what `from` holds to the directory `to`, which is made if there is none (its parent is not). Kept are modes,
/// owners where that is allowed (a group that cannot be given gets no more than all others), times to the nanosecond,
/// symbolic links, hard links within the tree, holes, extended attributes (user.*) and ACLs. Programs with set-id bits
/// or capabilities, devices, FIFOs and sockets, and what is mounted below, are errors.
/// A file gets its name when it is written, synced, read again and found the same; one that changed meanwhile is copied
/// once more. In a directory that this run has made, and that only its owner enters until all in it is finished, it may
/// have its name before: it has its original's time then when it is finished. All that can be copied is; then the error
/// has the number of the others and the first few names. What was cut off (Ctrl-C, SIGKILL, a full disk) goes on when
/// it is run again: what has its name already and agrees in size, time, mode and content is kept. `busy`: another copy
/// into `to` is at work on this host. A layer (Documentation/filesystems/overlayfs.rst of the kernel) is what was
/// changed on top of `to`: what it holds replaces what is there, its whiteouts take away, an opaque directory has
/// nothing else; all else in `to` stays. Its marks are xattrs of trusted.overlay.*, which only root sees, or
/// user.overlay.*, and are not copied. A layer made with redirect_dir or metacopy is not whole without what was below
/// it, and refused.
Result<CopyReport> copy(const Place& from, const Place& to, const Options& options, const OnProgress& progress = {});

/// What is in a file.
struct FileContent {
  std::string sha256; ///< 64 hexadecimal digits
  std::uint64_t bytes = 0;
  friend bool operator==(const FileContent&, const FileContent&) = default;
};
template <FieldsOf<FileContent> C> auto fields(C& c) {
  return named("sha256", c.sha256, "bytes", c.bytes);
}
/// Somebody else who has the file, or gets it at this moment: a program that prints it from an offset on, which is
/// given as its last word.
struct Upstream {
  std::string name; ///< for people
  Argv argv;
  std::optional<sys::User> as = {};
};
struct FetchReport {
  std::uint64_t bytes = 0;      ///< that were read now, from the original or another
  std::uint64_t kept = 0;       ///< that an earlier run has left
  std::string by = {};          ///< name of the upstream that gave the last of it; empty: the original
  std::string passed_over = {}; ///< why upstreams before it were not enough
  friend bool operator==(const FetchReport&, const FetchReport&) = default;
};
template <FieldsOf<FetchReport> R> auto fields(R& r) {
  return named("bytes", r.bytes, "kept", r.kept, "by", r.by, "passed_over", r.passed_over);
}
/// Brings one large file to this host's own disk: `to`, in a directory that is there, is only this user's to read, and
/// has its name once its content is the one that is wanted, and on the disk. Some pieces are under way at a time, so
/// that no round trip is waited for. What was cut off goes on at its offset: what is there of it lies beside `to`, as
/// .NAME.part. A file `to` that is right already is kept, any other is replaced by rename(2). Of `options` only
/// `deadline`, `as`, `reader`, `wait` and `bytes_per_second` matter. Errors: `conflict`: `from` has another content
/// than wanted, and nothing is left of it; `busy`: another fetch() of `to` is at work on this host. Upstreams come
/// before the original, in their order: from each is taken what it gives, and one that brings another content, ends, or
/// gives nothing for k_upstream_patience is passed over.
Result<FetchReport> fetch(const Place& from, const Place& to, const FileContent& content, const Options& options,
                          const OnProgress& progress = {}, const std::vector<Upstream>& upstreams = {});
inline constexpr std::chrono::seconds k_upstream_patience{20};

/// The other end of an upstream: writes the file `to` of fetch(), or the part of it that is there by now, from `offset`
/// on to a descriptor, and what is added to it meanwhile, until it has all `bytes` of it. `not_found`: neither has come
/// in `patience`; `timeout`: nothing was added for so long.
Result<void> serve(const Place& file, std::uint64_t bytes, std::uint64_t offset, int out,
                   std::chrono::milliseconds patience);

struct RemoveReport {
  std::uint64_t removed = 0; ///< names
};
template <FieldsOf<RemoveReport> R> auto fields(R& r) {
  return named("removed", r.removed);
}
/// Deletes the directory with all that is in it, or, where `place` says which inode, the file; nothing there is 0
/// names. `busy`: something is mounted in it.
Result<RemoveReport> remove(const Place& place, const Options& options, const OnProgress& progress = {});

struct Measured {
  std::uint64_t files = 0; ///< names of all that is no directory
  std::uint64_t directories = 0;
  std::uint64_t bytes = 0;     ///< sizes of regular files
  std::uint64_t allocated = 0; ///< what they take on the disk, a file with several names once
  std::int64_t used = 0;       ///< newest reading or change of a file or directory, seconds since 1970
  std::uint64_t unread = 0;    ///< directories in which this user may not look
  friend bool operator==(const Measured&, const Measured&) = default;
};
template <FieldsOf<Measured> M> auto fields(M& m) {
  return named("files", m.files, "directories", m.directories, "bytes", m.bytes, "allocated", m.allocated, "used",
               m.used, "unread", m.unread);
}
Result<Measured> measure(const Place& place, const Options& options, const OnProgress& progress = {});

inline constexpr std::uint32_t k_as_it_is = 0xFFFFFFFFU;
struct Modes {
  std::uint32_t gid = k_as_it_is;
  std::uint32_t mode = 0755; ///< of directories; of files without x, unless their owner may run them
};
/// Gives them to all that lies in the tree, and the directory itself. Symbolic links are left, and so are files of
/// which not all names lie in it. The number of names that were not so before.
Result<std::uint64_t> set_modes(const Place& place, const Modes& modes, const Options& options,
                                const OnProgress& progress = {});

/// Is it there, as remove() would find it? `conflict` if it is something else, or not the one that `place` says.
Result<bool> exists(const Place& place, const Options& options);

} // namespace sharefs::tree
