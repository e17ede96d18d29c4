#include "plan/actor_root.hpp"

#include "base/path.hpp"
#include "sys/process/become.hpp"

#include <cerrno>
#include <sys/stat.h>

namespace sharefs::plan {

namespace {

/// True if others than root and this user can make names in the directory. A user could mount a file system of their
/// own (FUSE) at such a name. With an ACL the group's bits are its mask, so they cover the ACL as well.
bool others_write(const sys::Fd& directory) {
  struct stat status{};
  return ::fstat(directory.get(), &status) != 0 || (status.st_uid != 0 && status.st_uid != ::geteuid()) ||
         (status.st_mode & (S_IWGRP | S_IWOTH)) != 0;
}

} // namespace

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

std::optional<ActorRoot> ActorRoot::for_this_process(const sys::Files& files) {
  const auto table = files.mounts();
  if (!table || files.root_may_hang())
    return std::nullopt;
  ActorRoot root(files.open_root(), std::nullopt);
  root.m_stop_at = files.hanging_in(*table);
  return root;
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
  if (m_stop_at) {
    rule.guarded = true;
    rule.stop_at = &*m_stop_at;
  }
  auto found = sys::walk(m_root.get(), whole, rule);
  m_needs_child = m_needs_child || (m_stop_at && (!found || others_write(found->directory)));
  if (!found)
    return fail(found.error().error());
  if (m_needs_child)
    return fail(errno_error(EPERM, path));
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
