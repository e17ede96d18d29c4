#pragma once
// Private to plan: where the file actions of a child process stand. All of it runs in a forked child (sys::in_child),
// never in the main process, because any path here may lie on a dead mount.
#include "base/result.hpp"
#include "plan/action.hpp"
#include "sys/fs/root_directory.hpp"

#include <fcntl.h>
#include <optional>
#include <string>
#include <sys/stat.h>

namespace sharefs::plan {

/// What is at a place, as lstat(2) and readlink(2) see it.
struct Found {
  bool exists = false;
  std::string link; ///< text of a symbolic link
  struct stat status = {};

  [[nodiscard]] bool is_link() const { return exists && S_ISLNK(status.st_mode); }
  [[nodiscard]] bool is_directory() const { return exists && S_ISDIR(status.st_mode); }
  [[nodiscard]] std::string text() const; ///< "nothing", "a link to `x`", "a directory" ...
};

/// The root directory and, with an actor, the user that this process has become.
class Ground {
 public:
  /// Opens the root and becomes the actor's user for good (nothing to do if we are that user). `permission`.
  static Result<Ground> enter(const std::string& root, const std::optional<Actor>& actor);

  /// The root directory, O_PATH.
  [[nodiscard]] sys::Fd root() const { return m_root.open("/", O_PATH | O_DIRECTORY); }
  /// The open parent directory of `path` and the name in it. Without an actor links on the way are resolved inside the
  /// root, as root only those that root has made; with one each component from the actor's `beneath` on must be a
  /// directory. Errors: `permission` for a link that is not followed, `not_found` for a missing directory.
  [[nodiscard]] Result<sys::Location> place(const std::string& path) const;

 private:
  Ground(const std::string& root, const std::optional<Actor>& actor) : m_root(root), m_actor(actor) {}
  [[nodiscard]] Result<sys::Location> place_from_root(const std::string& path) const;
  [[nodiscard]] Result<sys::Location> place_beneath(const std::string& path) const;

  sys::RootDirectory m_root;
  std::optional<Actor> m_actor;
};

/// What is there. `path` is for messages. A missing name is no error.
Result<Found> look(const sys::Location& place, const std::string& path);
/// As above, where a missing parent directory is "nothing there" too.
Result<Found> look(const Ground& ground, const std::string& path);

/// `PATH: expected X, found Y` with the code `conflict`.
tl::unexpected<Error> conflict(const std::string& path, const std::string& expected, const std::string& found);

/// rename(2) that never replaces. Where the file system does not know RENAME_NOREPLACE (NFS), by looking first.
/// 0 or errno (EEXIST).
int rename_exclusively(const sys::Location& from, const sys::Location& to);

/// Name next to `name` for something that is not finished; not the same on two hosts that share the directory.
std::string temporary_name(const std::string& name, const std::string& purpose);

} // namespace sharefs::plan
