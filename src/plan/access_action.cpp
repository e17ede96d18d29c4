// SetAccess: owner, mode and default ACL of one file or directory.
#include "plan/perform.hpp"

#include "base/text.hpp"
#include "base/try.hpp"
#include "sys/fs/walk.hpp"
#include "tree/acl.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fmt/format.h>

namespace sharefs::plan {

namespace {

/// True if each part of the access is either as before or as after, or the mode is what both allow: a process that was
/// killed between the system calls leaves such a mixture. chown(2) may have cleared the set-id bits.
bool is_intermediate(const Access& found, const Access& before, const Access& after) {
  constexpr std::uint32_t k_permissions = 01777;
  const bool owner = found.uid == before.uid || found.uid == after.uid;
  const bool group = found.gid == before.gid || found.gid == after.gid;
  const bool mode = std::ranges::any_of(std::array{before.mode, after.mode, before.mode & after.mode}, [&](auto one) {
    return found.mode == one || found.mode == (one & k_permissions);
  });
  return owner && group && mode &&
         (tree::same_acl(found.default_acl, before.default_acl) ||
          tree::same_acl(found.default_acl, after.default_acl));
}

std::string text_of(const Access& access) {
  return fmt::format("mode {}, uid {}, gid {}, {}", format_mode(access.mode), access.uid, access.gid,
                     access.default_acl.empty() ? "no default ACL" : "default ACL " + access.default_acl);
}

} // namespace

Result<Acted> act(const SetAccess& action, const ActorRoot& base, Phase phase) {
  // Only root could replace a file at this path (a guarded walk). From here on only the descriptor is used, so that a
  // rename has no effect.
  TRY_ASSIGN(const auto walked, base.find(action.path, true));
  if (!walked.exists())
    return fail(errno_error(ENOENT, action.path));
  const auto& target = walked.fd;
  struct stat status = walked.status;
  if (walked.is_link())
    return fail(ErrorCode::permission, "`" + action.path + "` is a symbolic link; its access is not what counts",
                "name the directory that it leads to");
  if (!S_ISDIR(status.st_mode) && !S_ISREG(status.st_mode))
    return fail(ErrorCode::conflict, action.path + ": expected a directory or a file, found a special file");
  TRY(check_identity(action.identity, status, action.path));

  TRY_ASSIGN(const auto found, tree::read_access(target.get(), status, action.path));
  if (tree::same_access(found, action.after))
    return Outcome::unchanged;
  if (action.before && !is_intermediate(found, *action.before, action.after))
    return conflict(action.path, text_of(*action.before), text_of(found));
  if (phase == Phase::check)
    return Acted{Outcome::done, found};

  TRY(tree::set_access(target.get(), found, action.after, action.path));
  // chmod(2) drops the set-group-id bit without an error if the caller is not in the group.
  if (::fstat(target.get(), &status) == 0 && (status.st_mode & 07777U) != action.after.mode)
    return fail(ErrorCode::permission,
                action.path + ": the mode became " + format_mode(status.st_mode & 07777U) + " instead of " +
                    format_mode(action.after.mode),
                "run sharefs as root, or as a member of the group");
  return Outcome::done;
}

} // namespace sharefs::plan
