#pragma once
// Queries about files, and their results, the entries. All reading of paths in the program goes through them.
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
  missing, ///< there is nothing, or a component of the path is missing or is not a directory
  file,
  directory,
  symlink,
  other,   ///< FIFO, socket, device
  unknown, ///< Entry::error_number says why
};
const char* to_string(EntryKind kind);

/// The result of statfs(2), which asks the server on a network file system. The free space is that for ordinary users.
struct Space {
  std::chrono::microseconds latency{0};
  std::uint64_t size_bytes = 0, free_bytes = 0, files = 0, free_files = 0;
  friend bool operator==(const Space&, const Space&) = default;
};

/// The file that a write test or a note made.
struct TestFile {
  std::uint32_t uid = 0;              ///< its owner, as the server has set it
  std::chrono::milliseconds ahead{0}; ///< how far its mtime is before the test (negative) or after it; 0: during it
  friend bool operator==(const TestFile&, const TestFile&) = default;
};

inline constexpr const char* k_note_text = "a note of sharefs"; ///< the target of the symbolic link of a note
/// A note shows who uses a directory ABOVE/ANY/FOUND. It is the symbolic link ABOVE/ANY/DIRECTORY/NAME.FOUND, whose
/// target does not exist. A link takes one request to the server, a file would take three.
struct Note {
  std::string above, directory, name;
  friend bool operator==(const Note&, const Note&) = default;
};

struct EntryQuery {
  std::string path;              ///< absolute, as seen from inside the root
  bool follow = false;           ///< also follow a link at the end of the path
  bool list = false;             ///< fill Entry::names for a directory
  std::size_t read_bytes = 0;    ///< fill Entry::content with at most this many bytes of a regular file
  bool space = false;            ///< fill Entry::space
  bool access = false;           ///< fill Entry::writable
  bool write_test = false;       ///< write, fsync, read back, compare and delete a file in the directory
  std::optional<Note> note = {}; ///< make this note when the directory is found; Entry::made is set if it exists then
  bool fresh = false;            ///< ask the server first where the path leads, instead of using this host's cache
  bool automount = false;        ///< enter an automount point, which mounts its file system
  Links links = Links::all;      ///< the links in the path that are followed
  bool guarded = false;          ///< refuse a path that somebody else could replace (see WalkRule::guarded)
  bool acl = false;              ///< limit the group's bits of Entry::mode to the rights that the ACL gives the group
  bool locks = false;            ///< fill Entry::lock_scope
  friend bool operator==(const EntryQuery&, const EntryQuery&) = default;
};

struct EntryRequest {
  std::vector<EntryQuery> queries;
  std::chrono::milliseconds deadline{3000}; ///< for each answer
  std::optional<User> as = std::nullopt;    ///< read as this user, always in a child
  friend bool operator==(const EntryRequest&, const EntryRequest&) = default;
};

struct Entry {
  std::string path;     ///< the path of the query
  std::string resolved; ///< the real path, as far as links could be followed; missing components are appended
  std::string ancestor; ///< the real path of the nearest directory above that exists
  EntryKind kind = EntryKind::unknown;
  int error_number = 0; ///< errno of the step that failed; ETIMEDOUT: no answer within the deadline
  std::string detail;   ///< describes the step that failed: "no answer to statfs within 2 s"
  std::string link_target;
  std::uint32_t mode = 0;     ///< 07777
  std::uint32_t withheld = 0; ///< with EntryQuery::acl: see mode_by_acl()
  std::uint32_t uid = 0, gid = 0;
  std::uint64_t size = 0, device = 0, inode = 0, links = 0;
  std::uint64_t allocated = 0;    ///< bytes that it occupies on the disk
  std::int64_t mtime = 0;         ///< seconds
  std::int64_t mtime_ns = 0;      ///< nanoseconds within that second
  bool writable = false;          ///< the user who asks may write and search (access(2))
  std::vector<std::string> names; ///< of a directory, sorted
  std::string content;
  std::optional<Space> space;
  std::optional<TestFile> made; ///< the file of EntryQuery::write_test; also set if the note exists
  // The mount that contains `resolved`, by the mount table.
  std::string mount;                         ///< target of the mount; empty for an empty table
  std::string fs_type;                       ///< type of the mount
  bool shared = false;                       ///< other hosts share the storage (is_shared)
  LockScope lock_scope = LockScope::unknown; ///< the processes that flock(2) excludes there

  [[nodiscard]] bool exists() const { return kind != EntryKind::missing && kind != EntryKind::unknown; }
  /// True if there was no answer in time: the file system hangs.
  [[nodiscard]] bool hung() const;
  /// Returns the error of an entry by its `error_number`: `timeout`, `permission`, `not_found` or `failed`. If the
  /// number is 0, the error is `failed` and names the type of the entry. The message begins with the path.
  [[nodiscard]] Error error() const;
  friend bool operator==(const Entry&, const Entry&) = default;
};

/// Returns device, inode, owner and kind of the entry.
FileIdentity identity_of(const Entry& entry);

class Files;
/// Returns the entries in the order of the queries; never fails as a whole. Paths on this host's own disks are read in
/// process; all other paths, and all paths for another user, are read in one child. If an answer does not come in time,
/// the entry is `unknown` with ETIMEDOUT, and so are all remaining paths on the same superblock, which are not tried.
/// `mounts` fills in the mount of each entry. A path below an automount point is `unknown` with EREMOTE, because
/// reading it would mount the file system, unless the query allows that. Takes at most request.deadline + 1 s, and the
/// time to start a thread for each superblock that hangs.
std::vector<Entry> read_entries(const Files& files, const MountTable& mounts, const EntryRequest& request);

} // namespace sharefs::sys
