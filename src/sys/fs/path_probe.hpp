#pragma once
// Reading the state of paths that may lie on a dead mount: always in a child with a deadline.
#include "base/result.hpp"
#include "sys/identity/user.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sharefs::sys {

// ---- health of one mount point ----

enum class PathHealth {
  ok,
  hung,      ///< no answer within the deadline
  stale,     ///< ESTALE
  denied,    ///< EACCES or EPERM: normal for a root-squashed 0700 directory, not a fault
  read_only, ///< the write test got EROFS
  missing,   ///< ENOENT or ENOTDIR
  full,      ///< the write test got ENOSPC or EDQUOT
  failed,    ///< another errno
};
const char* to_string(PathHealth health);

struct PathProbeRequest {
  std::string path;
  std::chrono::milliseconds deadline{2000};
  bool write_test = false; ///< write, fsync, read back, compare and delete `.sharefs-probe-HOST-PID`
  std::optional<User> as;

  friend bool operator==(const PathProbeRequest&, const PathProbeRequest&) = default;
};

struct PathProbe {
  PathHealth health = PathHealth::failed;
  int error_number = 0;
  std::string detail;                   ///< which step of the write test failed, or errno's text
  std::chrono::microseconds latency{0}; ///< of statfs, which always goes to the server
  std::uint64_t size_bytes = 0, free_bytes = 0, files = 0, free_files = 0; ///< of statfs; free for non-root users

  friend bool operator==(const PathProbe&, const PathProbe&) = default;
};

/// One child per path, all at the same time. A child that SIGKILL does not end is left to the kernel, and the result is
/// `hung`. Results are in the order of the requests.
std::vector<PathProbe> probe_paths(const std::vector<PathProbeRequest>& requests);

// ---- facts about many paths ----

struct PathQuery {
  std::string path;
  bool follow = false;        ///< stat instead of lstat
  bool list = false;          ///< names in a directory
  std::size_t read_bytes = 0; ///< content of a regular file, at most this much (never of a fifo or device)

  friend bool operator==(const PathQuery&, const PathQuery&) = default;
};

enum class PathKind { missing, file, directory, symlink, other, unknown /* error_number tells why */ };
const char* to_string(PathKind kind);

struct PathFact {
  std::string path;
  PathKind kind = PathKind::unknown;
  int error_number = 0; ///< of the step that failed; 0 otherwise
  std::string link_target;
  std::uint32_t mode = 0; ///< 07777
  std::uint32_t uid = 0, gid = 0;
  std::uint64_t size = 0, device = 0, inode = 0, links = 0;
  std::int64_t mtime = 0;           ///< seconds
  std::vector<std::string> entries; ///< sorted
  std::string content;

  friend bool operator==(const PathFact&, const PathFact&) = default;
};

struct InspectRequest {
  std::vector<PathQuery> queries;
  std::chrono::milliseconds deadline{3000};
  std::optional<User> as;

  friend bool operator==(const InspectRequest&, const InspectRequest&) = default;
};

/// All facts from one child, in order. Error `timeout` names the path that it hung on.
Result<std::vector<PathFact>> inspect_paths(const InspectRequest& request);

} // namespace sharefs::sys
