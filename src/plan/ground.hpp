#pragma once
// Private to plan: where the file actions of a child process stand. All of it runs in a forked child (sys::call), never
// in the main process, because any path here may lie on a dead mount.
#include "base/result.hpp"
#include "plan/action.hpp"
#include "sys/fs/walk.hpp"

#include <fcntl.h>
#include <optional>
#include <string>

namespace sharefs::plan {

/// The root directory and, with an actor, the user that this process has become.
class Ground {
 public:
  /// Opens the root and becomes the actor's user for good (nothing to do if we are that user). `permission`.
  static Result<Ground> enter(const std::string& root, const std::optional<Actor>& actor);

  [[nodiscard]] const sys::Fd& root() const { return m_root; }
  /// What lies at `path`, and the open directory that holds it. Only links that root or this process's user has made
  /// are followed, with an actor none from its `beneath` on: `permission`. `guarded`: see WalkRule.
  [[nodiscard]] Result<sys::Walked> find(const std::string& path, bool guarded = false) const;

 private:
  Ground(sys::Fd root, const std::optional<Actor>& actor) : m_root(std::move(root)), m_actor(actor) {}

  sys::Fd m_root;
  std::optional<Actor> m_actor;
};

/// `not_found` if there is no directory to make the last component of `path` in.
Result<void> check_parent(const sys::Walked& found, const std::string& path);

/// `PATH: expected X, found Y` with the code `conflict`.
tl::unexpected<Error> conflict(const std::string& path, const std::string& expected, const std::string& found);

/// Are both one file, not a directory, by two names?
bool is_second_name(const sys::Walked& one, const sys::Walked& other);

/// rename(2) that never replaces. Where the file system does not know RENAME_NOREPLACE (NFS), a file gets a second
/// name, then loses its first (also if an interrupted call has left it with both); a directory is renamed after asking.
/// 0 or errno; EEXIST: something is there; ESTALE: what was to be renamed is another thing now.
int rename_exclusively(const sys::Walked& from, const sys::Walked& to);

/// Name next to `name` for something that is not finished; not the same on two hosts that share the directory.
std::string temporary_name(const std::string& name, const std::string& purpose);

} // namespace sharefs::plan
