// Mount, Unmount and Remount, by System. The mount table says whether they have succeeded, never an exit code.
#include "base/path.hpp"
#include "base/source.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "plan/perform.hpp"
#include "sys/mounting/mount_call.hpp"

#include <fmt/format.h>

namespace sharefs::plan {

namespace {

std::string text_of(const sys::MountEntry& mount) {
  return "`" + mount.source + "` (" + mount.fs_type + ")";
}

/// The topmost mount at the target of an action. An automount point on which nothing is mounted does not count.
struct Mounted {
  std::optional<sys::MountEntry> mount;
  bool is_wanted = false; ///< the mount is the one that the action names
};

template <class A> Result<Mounted> find_mount(sys::System& system, const A& action) {
  TRY_ASSIGN(const auto table, system.mounts());
  const auto target = normalize_path(action.target);
  const auto* mount = table.at(target);
  if (mount == nullptr || mount->fs_type == "autofs")
    return Mounted{};
  // For NFS only the source is compared: the table shows type nfs or nfs4 by the negotiated version. squashfuse does
  // not show its image, but only this user could have mounted one there.
  const bool wanted = action.fs_type == sys::k_bind         ? table.is_bind(target, normalize_path(action.source))
                      : action.fs_type == sys::k_image      ? read_image_path(system, *mount) == action.source
                      : action.fs_type == sys::k_user_image ? mount->fs_type.starts_with(sys::k_user_image)
                                                            : is_same_source(mount->source, action.source);
  return Mounted{*mount, wanted};
}

} // namespace

std::string read_image_path(sys::System& system, const sys::MountEntry& mount) {
  constexpr std::size_t k_longest = 8192;
  constexpr std::string_view k_deleted = " (deleted)"; // the kernel adds it (d_path(9))
  if (mount.fs_type != sys::k_image)
    return {};
  const auto backing = fmt::format("/sys/dev/block/{}:{}/loop/backing_file", mount.major, mount.minor);
  std::string path(trim(system.entry({.path = backing, .read_bytes = k_longest}).content));
  return path.ends_with(k_deleted) ? path.substr(0, path.size() - k_deleted.size()) : path;
}

Result<Acted> act(const Mount& action, sys::System& system, Phase phase) {
  TRY_ASSIGN(const auto before, find_mount(system, action));
  const auto is_there = [&](const Mounted& found) {
    const bool local =
        action.fs_type == sys::k_bind || action.fs_type == sys::k_image || action.fs_type == sys::k_user_image;
    return found.is_wanted && (local || sys::is_nfs(*found.mount));
  };
  if (is_there(before))
    return Outcome::unchanged;
  if (before.mount)
    return conflict(action.target, "no mount", text_of(*before.mount));
  if (phase == Phase::check)
    return Outcome::done;
  const auto mounted = system.mount(action);
  TRY_ASSIGN(const auto after, find_mount(system, action));
  if (is_there(after))
    return Outcome::done; // even if the deadline of the mount has passed
  TRY(mounted);
  return fail(ErrorCode::failed, "the mount command reported success, but the mount table does not show `" +
                                     action.source + "` at " + action.target);
}

Result<Acted> act(const Unmount& action, sys::System& system, Phase phase) {
  TRY_ASSIGN(const auto before, find_mount(system, action));
  if (!before.mount)
    return Outcome::unchanged;
  if (!action.source.empty() && !before.is_wanted)
    return conflict(action.target, "`" + action.source + "`", text_of(*before.mount));
  if (phase == Phase::check)
    return Outcome::done;
  TRY(system.unmount(action));
  return Outcome::done;
}

Result<Acted> act(const Remount& action, sys::System& system, Phase phase) {
  const auto allowed = [&]() -> Result<std::string> {
    TRY_ASSIGN(const auto table, system.mounts());
    const auto* mount = table.at(normalize_path(action.target));
    if (mount == nullptr || !sys::is_nfs(*mount))
      return fail(ErrorCode::not_found, "nothing is mounted on " + action.target);
    return sys::restrictions_of(*mount);
  };
  TRY_ASSIGN(const auto found, allowed());
  if (found == action.after)
    return Outcome::unchanged;
  if (found != action.before)
    return conflict(action.target, "`" + action.before + "`", "`" + found + "`");
  if (phase == Phase::check)
    return Outcome::done;
  TRY(system.mount({"", action.target, sys::k_remount, action.after, action.deadline}));
  TRY_ASSIGN(const auto now, allowed());
  if (now != action.after)
    return fail(ErrorCode::failed, fmt::format("{} is still mounted with `{}`", action.target, now),
                "unmount it, and mount it again");
  return Outcome::done;
}

} // namespace sharefs::plan
