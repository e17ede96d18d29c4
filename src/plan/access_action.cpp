// SetAccess: owner, mode and default ACL of one file or directory. In a child.
#include "plan/perform.hpp"

#include "base/text.hpp"
#include "sys/fs/walk.hpp"

#include <acl/libacl.h>
#include <cerrno>
#include <fmt/format.h>
#include <memory>
#include <sys/acl.h>

namespace sharefs::plan {

namespace {

struct FreeAcl {
  void operator()(void* acl) const { ::acl_free(acl); }
};
using Acl = std::unique_ptr<std::remove_pointer_t<acl_t>, FreeAcl>;

/// The name under which calls that take a path reach an open O_PATH descriptor.
std::string by_descriptor(int fd) {
  return "/proc/self/fd/" + std::to_string(fd);
}

/// Short text form with numeric ids; "" for none, also on file systems without ACLs.
Result<std::string> default_acl_of(int fd, const std::string& path) {
  const Acl acl(::acl_get_file(by_descriptor(fd).c_str(), ACL_TYPE_DEFAULT));
  if (!acl) {
    if (errno == ENOTSUP || errno == ENOSYS)
      return std::string();
    return fail(errno_error(errno, path));
  }
  if (::acl_entries(acl.get()) == 0)
    return std::string();
  const std::unique_ptr<char, FreeAcl> text(
      ::acl_to_any_text(acl.get(), nullptr, ',', TEXT_ABBREVIATE | TEXT_NUMERIC_IDS));
  if (!text)
    return fail(errno_error(errno, path));
  return std::string(text.get());
}

bool same_acl(const std::string& a, const std::string& b) {
  if (a == b || a.empty() || b.empty())
    return a == b;
  const Acl first(::acl_from_text(a.c_str()));
  const Acl second(::acl_from_text(b.c_str()));
  return first && second && ::acl_cmp(first.get(), second.get()) == 0;
}

bool same(const Access& a, const Access& b) {
  return a.uid == b.uid && a.gid == b.gid && a.mode == b.mode && same_acl(a.default_acl, b.default_acl);
}

/// Part by part either as before or as after: what a process that was killed in the middle leaves behind. chown(2) may
/// have cleared the set-id bits.
bool lies_between(const Access& found, const Access& before, const Access& after) {
  constexpr std::uint32_t k_permissions = 01777;
  const bool owner = found.uid == before.uid || found.uid == after.uid;
  const bool group = found.gid == before.gid || found.gid == after.gid;
  const bool mode = found.mode == before.mode || found.mode == after.mode ||
                    found.mode == (before.mode & k_permissions) || found.mode == (after.mode & k_permissions);
  return owner && group && mode &&
         (same_acl(found.default_acl, before.default_acl) || same_acl(found.default_acl, after.default_acl));
}

std::string text_of(const Access& access) {
  return fmt::format("mode {}, uid {}, gid {}, {}", format_mode(access.mode), access.uid, access.gid,
                     access.default_acl.empty() ? "no default ACL" : "default ACL " + access.default_acl);
}

Result<void> set_default_acl(int fd, const std::string& path, const std::string& text) {
  const auto name = by_descriptor(fd);
  if (text.empty()) {
    if (::acl_delete_def_file(name.c_str()) != 0 && errno != ENOTSUP && errno != ENOSYS)
      return fail(errno_error(errno, path));
    return {};
  }
  const Acl acl(::acl_from_text(text.c_str()));
  if (!acl || ::acl_valid(acl.get()) != 0)
    return fail(ErrorCode::failed, path + ": `" + text + "` is not a valid ACL");
  if (::acl_set_file(name.c_str(), ACL_TYPE_DEFAULT, acl.get()) == 0)
    return {};
  if (errno == ENOTSUP || errno == ENOSYS)
    return fail(ErrorCode::unsupported, path + ": its file system has no POSIX ACLs",
                "set it on the server, or mount the file system with ACLs");
  return fail(errno_error(errno, path));
}

} // namespace

Result<Outcome> act(SetAccess& action, const Ground& ground, Phase phase) {
  // A path that nobody but root could exchange, and from here on the descriptor, whatever happens to the name.
  const auto walked = ground.find(action.path, true);
  if (!walked)
    return fail(walked.error());
  if (!walked->exists())
    return fail(errno_error(ENOENT, action.path));
  const auto& target = walked->fd;
  struct stat status = walked->status;
  if (walked->is_link())
    return fail(ErrorCode::permission, "`" + action.path + "` is a symbolic link; its access is not what counts",
                "name the directory that it leads to");
  if (!S_ISDIR(status.st_mode) && !S_ISREG(status.st_mode))
    return fail(ErrorCode::conflict, action.path + ": expected a directory or a file, found a special file");
  if (action.inode != 0 && (action.device != status.st_dev || action.inode != status.st_ino))
    return conflict(action.path, "the directory that the plan was made for", "another one");

  Access found{status.st_uid, status.st_gid, status.st_mode & 07777U, ""};
  if (S_ISDIR(status.st_mode)) {
    auto acl = default_acl_of(target.get(), action.path);
    if (!acl)
      return fail(acl.error());
    found.default_acl = std::move(*acl);
  }
  if (same(found, action.after))
    return Outcome::unchanged;
  if (action.before && !lies_between(found, *action.before, action.after))
    return conflict(action.path, text_of(*action.before), text_of(found));
  if (phase == Phase::look) {
    if (!action.before)
      action.before = found;
    return Outcome::done;
  }

  const bool other_owner = found.uid != action.after.uid || found.gid != action.after.gid;
  if (other_owner &&
      ::fchownat(target.get(), "", action.after.uid, action.after.gid, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) != 0)
    return fail(errno_error(errno, action.path, "changing the owner needs root, on the server"));
  if (!same_acl(found.default_acl, action.after.default_acl))
    if (auto set = set_default_acl(target.get(), action.path, action.after.default_acl); !set)
      return fail(set.error());
  // After chown, which clears the set-id bits.
  if (::chmod(by_descriptor(target.get()).c_str(), action.after.mode) != 0)
    return fail(errno_error(errno, action.path));
  // chmod(2) drops the set-group-id bit without a word if the group is none of the caller's.
  if (::fstat(target.get(), &status) == 0 && (status.st_mode & 07777U) != action.after.mode)
    return fail(ErrorCode::permission,
                action.path + ": the mode became " + format_mode(status.st_mode & 07777U) + " instead of " +
                    format_mode(action.after.mode),
                "run sharefs as root, or as a member of the group");
  return Outcome::done;
}

} // namespace sharefs::plan
