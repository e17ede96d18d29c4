#pragma once
// The one question about files that the program asks, and its one answer: an entry.
#include "base/result.hpp"
#include "sys/fs/file_identity.hpp"
#include "sys/fs/walk.hpp"
#include "sys/mounts/mount_table.hpp"
#include "sys/process/user.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sharefs::sys {

enum class EntryKind {
  missing, ///< nothing there, or a component on the way is missing or no directory
  file,
  directory,
  symlink,
  other,   ///< FIFO, socket, device
  unknown, ///< Entry::error_number says why
};
const char* to_string(EntryKind kind);

/// statfs(2), which goes to the server on a network file system; free for users other than root.
struct Space {
  std::chrono::microseconds latency{0};
  std::uint64_t size_bytes = 0, free_bytes = 0, files = 0, free_files = 0;
  friend bool operator==(const Space&, const Space&) = default;
};

/// The file that a write test or a note made.
struct TestFile {
  std::uint32_t uid = 0;              ///< whose it became
  std::chrono::milliseconds ahead{0}; ///< its time, as far as it lies before (negative) or behind the test itself
  friend bool operator==(const TestFile&, const TestFile&) = default;
};

inline constexpr const char* k_note_text = "a note of sharefs"; ///< of the link that a note is
/// Word of who uses a directory ABOVE/ANY/FOUND: the link ABOVE/ANY/DIRECTORY/NAME.FOUND, which leads nowhere. To make
/// a link is one request to a server; to make a file is three.
struct Note {
  std::string above, directory, name;
  friend bool operator==(const Note&, const Note&) = default;
};

struct EntryQuery {
  std::string path;              ///< absolute, as seen from inside the root
  bool follow = false;           ///< the link at the end, too
  bool list = false;             ///< Entry::names of a directory
  std::size_t read_bytes = 0;    ///< Entry::content of a regular file, at most this much (never of a FIFO or device)
  bool space = false;            ///< Entry::space
  bool access = false;           ///< Entry::writable
  bool write_test = false;       ///< write, fsync, read back, compare and delete a file in the directory
  std::optional<Note> note = {}; ///< left as soon as the directory is found; Entry::made says whether it is there
  bool fresh = false;            ///< ask the server first where the path leads now, whatever this host remembers
  bool automount = false;        ///< go through an automount point, which mounts what it stands for
  Links links = Links::all;      ///< which links on the way are followed
  bool guarded = false;          ///< refuse a path that somebody else could replace (see WalkRule::guarded)
  bool acl = false;              ///< Entry::mode has of the group's bits what its ACL leaves it (mode_by_acl())
  friend bool operator==(const EntryQuery&, const EntryQuery&) = default;
};

struct EntryRequest {
  std::vector<EntryQuery> queries;
  std::chrono::milliseconds deadline{3000}; ///< for each answer
  std::optional<User> as = std::nullopt;    ///< ask as this user: always in a child
  friend bool operator==(const EntryRequest&, const EntryRequest&) = default;
};

struct Entry {
  std::string path;     ///< as asked
  std::string resolved; ///< through links, as far as they could be followed; what is missing is appended
  std::string ancestor; ///< the nearest directory above that exists, resolved
  EntryKind kind = EntryKind::unknown;
  int error_number = 0; ///< of the step that failed; ETIMEDOUT: no answer within the deadline
  std::string detail;   ///< the step that failed in words: "no answer to statfs within 2 s"
  std::string link_target;
  std::uint32_t mode = 0; ///< 07777
  std::uint32_t uid = 0, gid = 0;
  std::uint64_t size = 0, device = 0, inode = 0, links = 0;
  std::uint64_t allocated = 0;    ///< bytes that it takes on the disk
  std::int64_t mtime = 0;         ///< seconds
  std::int64_t mtime_ns = 0;      ///< and nanoseconds
  bool writable = false;          ///< access(2) for writing and searching, as the user who asks
  std::vector<std::string> names; ///< of a directory, sorted
  std::string content;
  std::optional<Space> space;
  std::optional<TestFile> made; ///< by EntryQuery::write_test or note
  // Where `resolved` lies, by the mount table alone.
  std::string mount;                         ///< target of the mount; empty for an empty table
  std::string fs_type;                       ///< of that
  bool shared = false;                       ///< on storage that other hosts share (is_shared)
  LockScope lock_scope = LockScope::unknown; ///< whom flock(2) excludes there

  [[nodiscard]] bool exists() const { return kind != EntryKind::missing && kind != EntryKind::unknown; }
  /// No answer in time: the file system that it lies on hangs.
  [[nodiscard]] bool hung() const;
  /// The error of an entry, the path first: `timeout`, `permission`, `not_found` or `failed`, by its `error_number`;
  /// where that is 0, what lies there instead.
  [[nodiscard]] Error error() const;
  friend bool operator==(const Entry&, const Entry&) = default;
};

/// Of what lies there: `device` and `inode`, owner and kind.
FileIdentity identity_of(const Entry& entry);

class Files;
/// The answers in the order of the queries; never fails as a whole. Paths on this host's own disks are looked at in
/// process; every other one, and all of another user's, in one child that answers many in turn. An answer that does not
/// come in time is an entry of kind `unknown` with ETIMEDOUT, and so are, without being asked again, all other paths on
/// the same superblock. `mounts` says where a path lies. A path below an automount point is `unknown` with EREMOTE,
/// because a look would mount it, unless the query wants that. Takes at most request.deadline + 1 s however many of
/// them hang.
std::vector<Entry> read_entries(const Files& files, const MountTable& mounts, const EntryRequest& request);

} // namespace sharefs::sys
