#pragma once
// The one walk from the root directory down a path, component by component, on descriptors (compare systemd's chase()):
// what is checked is what is used, even if somebody renames it meanwhile.
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

/// Where file systems are mounted.
using MountTargets = std::set<std::string, std::less<>>;

/// Which symbolic links a walk follows. They stay inside the root, as in chroot(2).
enum class Links {
  all,     ///< as the kernel does
  trusted, ///< those that root or this process's user made: any other could have been planted
  none,
};

struct WalkRule {
  Links links = Links::all;
  bool follow_last = false; ///< the link at the end, too
  /// From this directory on no link is followed at all: work in a user's home (empty: nowhere).
  std::string beneath = {};
  /// Of `beneath`, 0: any. Another thing there ends the walk with ESTALE.
  std::uint64_t device = 0, inode = 0;
  /// Refuse (EPERM) a path that somebody else could replace: each directory on the way, up to the one that holds the
  /// name, belongs to root or this process's user, and nobody else may write there, unless it is sticky and the next
  /// component is root's or ours, or missing: the caller then has to make it exclusively.
  bool guarded = false;
  /// Targets of mounts that must not be entered. The walk ends there with WalkError::may_hang.
  const MountTargets* stop_at = nullptr;
  /// False: only the thing itself is asked for, Walked::directory may be empty. Saves three system calls of a look.
  bool wants_directory = true;
};

struct WalkError {
  int error_number = 0;
  std::string path;      ///< the component that it ended at
  std::string reason;    ///< in words where errno's text does not say it; may be empty
  std::string resolved;  ///< `path` with what was still to come
  bool may_hang = false; ///< a mount of WalkRule::stop_at; error_number is 0

  [[nodiscard]] Error error() const;
};

struct Walked {
  Fd directory;     ///< O_PATH: the nearest directory that exists and holds, or would hold, `name`
  std::string name; ///< "." for the root itself
  Fd fd;            ///< O_PATH, without following: the thing itself; empty: there is none
  struct stat status = {};
  std::string link;            ///< text of a link that was not followed
  std::string resolved;        ///< real path, with what is missing appended
  std::string ancestor;        ///< real path of `directory`
  bool parent_missing = false; ///< more than the last component is missing
  bool not_directory = false;  ///< because `name` is a file, of which the rest of the path wants a directory

  [[nodiscard]] bool exists() const { return static_cast<bool>(fd); }
  [[nodiscard]] bool is_link() const { return exists() && S_ISLNK(status.st_mode); }
  [[nodiscard]] bool is_directory() const { return exists() && S_ISDIR(status.st_mode); }
  /// "nothing", "a link to `x`", "a directory", "a file", "a special file"
  [[nodiscard]] std::string text() const;
};

/// Walks from `root` (an open directory, O_PATH) along `path`, which is absolute as seen from there. `..` is the
/// kernel's, after links. A missing name or directory is no error: see Walked.
tl::expected<Walked, WalkError> walk(int root, std::string_view path, const WalkRule& rule = {});

/// True once `ask`, which asks for attributes of what is open, is true; else errno. Along with those of a directory in
/// which a name was looked up, Linux from 6.19 on may ask an NFS server for a delegation. Where this user may not read
/// it, or the server does not know the question (EREMOTEIO, of NFS-Ganesha), it gets neither. It asks so once until a
/// name is looked up again, so another try or two have the answer.
bool ask_attributes(const std::function<bool()>& ask);
/// fstat(2) so.
bool stat_open(int fd, struct stat& status);

/// Opens `path` below the directory `parent` on the same mount, without following a link: EXDEV for what is
/// mounted on the way, be it of the same file system (a bind mount has the same device number).
Fd open_below(int parent, const char* path, int flags = O_RDONLY | O_DIRECTORY);

/// Calls `visit` for each name in the open directory `fd` (not O_PATH) but `.` and `..`, as they come, while it returns
/// 0. What it returned last, or errno.
int for_each_name(Fd fd, const std::function<int(int directory, const dirent& entry)>& visit);
/// The names themselves. 0 or errno.
int list_names(Fd fd, std::vector<std::string>& into);

} // namespace sharefs::sys
