#pragma once
// Private to plan: the root directory as the file actions of a child process see it. All of it runs in a forked child
// (sys::call), never in the main process, because any path here may lie on a dead mount.
#include "base/result.hpp"
#include "plan/action.hpp"
#include "sys/fs/exclusive.hpp"
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
  /// Opens the root and becomes the actor's user for good (nothing to do if we are that user). `permission`.
  static Result<ActorRoot> enter(const std::string& root, const std::optional<Actor>& actor);

  [[nodiscard]] const sys::Fd& root() const { return m_root; }
  /// Finds the thing at `path`, and the open directory that holds it. Only links that root or this process's user has
  /// made are followed, with an actor none from its `beneath` on: `permission`. `guarded`: see WalkRule.
  [[nodiscard]] Result<sys::Walked> find(const std::string& path, bool guarded = false) const;

 private:
  ActorRoot(sys::Fd root, const std::optional<Actor>& actor) : m_root(std::move(root)), m_actor(actor) {}

  sys::Fd m_root;
  std::optional<Actor> m_actor;
};

/// `not_found` if there is no directory to make the last component of `path` in.
Result<void> check_parent(const sys::Walked& found, const std::string& path);

/// `PATH: expected X, found Y` with the code `conflict`.
tl::unexpected<Error> conflict(const std::string& path, const std::string& expected, const std::string& found);

/// `conflict` where what was found is not what the plan was made for; `status` is of the descriptor that is changed.
Result<void> check_identity(const sys::FileIdentity& expected, const struct stat& status, const std::string& path);

} // namespace sharefs::plan
