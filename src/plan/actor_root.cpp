#include "plan/actor_root.hpp"

#include "base/path.hpp"
#include "sys/process/become.hpp"

#include <cerrno>
#include <sys/stat.h>

namespace sharefs::plan {

Result<ActorRoot> ActorRoot::enter(const std::string& root, const std::optional<Actor>& actor) {
  ::umask(0); // every action sets its mode explicitly
  sys::Fd directory(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!directory)
    return fail(errno_error(errno, root));
  if (actor)
    if (const int refused = sys::become(actor->user); refused != 0)
      return fail(errno_error(refused, "cannot act as `" + actor->user.name + "`", "run sharefs as root"));
  return ActorRoot(std::move(directory), actor);
}

Result<sys::Walked> ActorRoot::find(const std::string& path, bool guarded) const {
  const auto whole = normalize_path(path);
  if (path.empty() || path.front() != '/' || whole == "/")
    return fail(ErrorCode::failed, "`" + path + "` is not a path that sharefs can act on");
  sys::WalkRule rule{.links = sys::Links::trusted, .guarded = guarded};
  if (m_actor) {
    rule.beneath = normalize_path(m_actor->beneath);
    rule.device = m_actor->device;
    rule.inode = m_actor->inode;
    if (rule.beneath == "/" || whole == rule.beneath || !is_under(whole, rule.beneath))
      return fail(ErrorCode::permission, "`" + whole + "` does not lie below `" + rule.beneath + "`");
  }
  auto found = sys::walk(m_root.get(), whole, rule);
  if (!found)
    return fail(found.error().error());
  if (found->not_directory)
    return fail(errno_error(ENOTDIR, path));
  return std::move(*found);
}

Result<void> check_parent(const sys::Walked& found, const std::string& path) {
  if (found.parent_missing)
    return fail(errno_error(ENOENT, parent_path(path)));
  return {};
}

tl::unexpected<Error> conflict(const std::string& path, const std::string& expected, const std::string& found) {
  return fail(sys::conflict_error(path, expected, found));
}

Result<void> check_identity(const sys::FileIdentity& expected, const struct stat& status, const std::string& path) {
  if (const auto found = sys::difference(expected, status); !found.empty())
    return conflict(path, "what the plan was made for", found);
  return {};
}

} // namespace sharefs::plan
