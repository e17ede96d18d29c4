#pragma once
// Private to plan: the root directory for file actions, which run in a forked child (sys::call) because any path may
// lie on a dead mount. They run in this process only where neither that nor another user can hold it up
// (ActorRoot::for_this_process).
#include "base/result.hpp"
#include "plan/action.hpp"
#include "sys/fs/exclusive.hpp"
#include "sys/fs/files.hpp"
#include "sys/fs/walk.hpp"

#include <fcntl.h>
#include <optional>
#include <string>

namespace sharefs::plan {

using sys::is_second_name;
using sys::rename_exclusively;
using sys::temporary_name;

/// The root directory and, with an actor, the user that this process has become.
class ActorRoot {
 public:
  /// Opens the root. With an actor this process becomes the actor's user for good. Error `permission` if it cannot.
  static Result<ActorRoot> enter(const std::string& root, const std::optional<Actor>& actor);

  /// Returns the root for this process, which has no deadline. Then find() stops in front of each mount that may hang,
  /// and where somebody else can put something: such an action needs a child (`needs_child`). nullopt: each does.
  static std::optional<ActorRoot> for_this_process(const sys::Files& files);
  [[nodiscard]] bool needs_child() const { return m_needs_child; }

  /// Finds the file at `path` and opens the directory that holds it. It follows only links of root or of this process's
  /// user, and with an actor no link from its `beneath` on; any other link is the error `permission`. `guarded`: see
  /// WalkRule.
  [[nodiscard]] Result<sys::Walked> find(const std::string& path, bool guarded = false) const;

 private:
  ActorRoot(sys::Fd root, const std::optional<Actor>& actor) : m_root(std::move(root)), m_actor(actor) {}

  sys::Fd m_root;
  std::optional<Actor> m_actor;
  std::optional<sys::MountTargets> m_stop_at; ///< mounts that may hang, if this is for this process
  mutable bool m_needs_child = false;         ///< find() has failed in this process
};

/// Error `not_found` if the parent directory of `path` does not exist.
Result<void> check_parent(const sys::Walked& found, const std::string& path);

/// Returns the error `PATH: expected X, found Y` with the code `conflict`.
tl::unexpected<Error> conflict(const std::string& path, const std::string& expected, const std::string& found);

/// Error `conflict` if the file is not the one that the plan was made for. `status` must come from the descriptor that
/// is going to be changed.
Result<void> check_identity(const sys::FileIdentity& expected, const struct stat& status, const std::string& path);

} // namespace sharefs::plan
