#pragma once
// Walks from the root directory down a path, component by component, on descriptors (compare systemd's chase()). So the
// entry that was checked is the one that is used, even if somebody renames it meanwhile.
#include "base/result.hpp"
#include "sys/process/fd.hpp"

#include <cstdint>
#include <dirent.h>
#include <fcntl.h>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <vector>

namespace sharefs::sys {

/// Mount points.
using MountTargets = std::set<std::string, std::less<>>;

/// The symbolic links that a walk follows. They never lead out of the root, as in chroot(2).
enum class Links {
  all,     ///< all links, as the kernel does
  trusted, ///< links of root or of this process's user: an attacker could have made any other
  none,
};

struct WalkRule {
  Links links = Links::all;
  bool follow_last = false; ///< also follow a link at the end of the path
  /// Below this directory no link is followed at all, for work in a user's home. Empty: there is no such directory.
  std::string beneath = {};
  /// The expected device and inode of `beneath`; 0: any. A different directory ends the walk with ESTALE.
  std::uint64_t device = 0, inode = 0;
  /// Refuse (EPERM) a path that somebody else could replace. Each directory down to the one that contains the name must
  /// belong to root or this process's user, and nobody else may write there. A sticky directory is allowed if the next
  /// component belongs to root or this user, or is missing; the caller must then create it exclusively.
  bool guarded = false;
  /// Targets of mounts that must not be entered. The walk ends there with WalkError::may_hang.
  const MountTargets* stop_at = nullptr;
  /// False: only the entry itself is needed, and Walked::directory may be empty. This saves three system calls.
  bool wants_directory = true;
};

struct WalkError {
  int error_number = 0;
  std::string path;      ///< the component at which the walk ended
  std::string reason;    ///< a description if errno's text is not sufficient; may be empty
  std::string resolved;  ///< `path` with the remaining components
  bool may_hang = false; ///< the walk has reached a mount of WalkRule::stop_at; error_number is 0

  [[nodiscard]] Error error() const;
};

struct Walked {
  Fd directory;     ///< O_PATH: the nearest existing directory that contains, or would contain, `name`
  std::string name; ///< "." for the root itself
  Fd fd;            ///< O_PATH, links not followed: the entry itself; empty if it does not exist
  struct stat status = {};
  std::string link;            ///< target of a link that was not followed
  std::string resolved;        ///< real path, with missing components appended
  std::string ancestor;        ///< real path of `directory`
  bool parent_missing = false; ///< more than the last component is missing
  bool not_directory = false;  ///< a component before the last one, `name`, is not a directory

  [[nodiscard]] bool exists() const { return static_cast<bool>(fd); }
  [[nodiscard]] bool is_link() const { return exists() && S_ISLNK(status.st_mode); }
  [[nodiscard]] bool is_directory() const { return exists() && S_ISDIR(status.st_mode); }
  /// Describes the entry: "nothing", "a link to `x`", "a directory", "a file", "a special file".
  [[nodiscard]] std::string text() const;
};

/// Walks from `root` (an open directory, O_PATH) along `path`, which is absolute as seen from there. `..` has the same
/// meaning as in the kernel, also after a link. A missing name or directory is not an error: see Walked. A `root` of -1
/// was just not opened, and errno is the error.
tl::expected<Walked, WalkError> walk(int root, std::string_view path, const WalkRule& rule = {});
/// Opens the directory `root`, and walks from there. For callers to whom each error is the same.
Result<Walked> walk_from(const std::string& root, std::string_view path, const WalkRule& rule = {});

/// Calls `ask`, which reads attributes of an open entry, and repeats it after EACCES or EREMOTEIO. True if a call has
/// succeeded, else false with errno. After a lookup in a directory, Linux from 6.19 on may ask an NFS server for a
/// delegation in the same request as for the attributes. If this user may not read the directory, or the server does
/// not know the request (EREMOTEIO, of NFS-Ganesha), the whole request fails. The kernel asks so only once until the
/// next lookup, so one or two repetitions get the attributes.
bool ask_attributes(const std::function<bool()>& ask);
/// Calls fstat(2) by ask_attributes().
bool stat_open(int fd, struct stat& status);

/// Opens `path` below the directory `parent` on the same mount, without following a link. EXDEV: there is a mount in
/// the path, also a bind mount of the same file system, which has the same device number.
Fd open_below(int parent, const char* path, int flags = O_RDONLY | O_DIRECTORY);

/// Calls `visit` for each name in the open directory `fd` (not O_PATH) except `.` and `..`, unsorted, until it returns
/// something other than 0. Returns that value, or 0, or errno.
int for_each_name(Fd fd, const std::function<int(int directory, const dirent& entry)>& visit);
/// Appends the names in the directory to `into`. Returns 0 or errno.
int list_names(Fd fd, std::vector<std::string>& into);

} // namespace sharefs::sys
