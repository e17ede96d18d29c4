// Mount and Unmount, by System; what is there is judged by the mount table, never by an exit code.
#include "base/path.hpp"
#include "base/source.hpp"
#include "plan/perform.hpp"

namespace sharefs::plan {

namespace {

std::string text_of(const sys::MountEntry& mount) {
  return "`" + mount.source + "` (" + mount.fs_type + ")";
}

/// The topmost mount at `target`; an automount point that nothing is mounted on counts as nothing.
Result<std::optional<sys::MountEntry>> mounted_at(sys::System& system, const std::string& target) {
  const auto table = system.mounts();
  if (!table)
    return fail(table.error());
  const auto* mount = table->at(normalize_path(target));
  if (mount == nullptr || mount->fs_type == "autofs")
    return std::nullopt;
  return *mount;
}

/// nfs or nfs4: which of the two the table shows depends on the negotiated version.
bool is_wanted(const sys::MountEntry& mount, const Mount& action) {
  return sys::is_nfs(mount) && is_same_source(mount.source, action.source);
}

} // namespace

Result<Outcome> act(Mount& action, sys::System& system, Phase phase) {
  const auto before = mounted_at(system, action.target);
  if (!before)
    return fail(before.error());
  if (*before && is_wanted(**before, action))
    return Outcome::unchanged;
  if (*before)
    return conflict(action.target, "no mount", text_of(**before));
  if (phase == Phase::look)
    return Outcome::done;
  const auto mounted = system.mount(action);
  const auto after = mounted_at(system, action.target);
  if (!after)
    return fail(after.error());
  if (*after && is_wanted(**after, action))
    return Outcome::done; // even if its deadline passed at that moment
  if (!mounted)
    return fail(mounted.error());
  return fail(ErrorCode::failed, "the mount command reported success, but the mount table does not show `" +
                                     action.source + "` at " + action.target);
}

Result<Outcome> act(Unmount& action, sys::System& system, Phase phase) {
  const auto before = mounted_at(system, action.target);
  if (!before)
    return fail(before.error());
  if (!*before)
    return Outcome::unchanged;
  if (!action.source.empty() && !is_same_source((*before)->source, action.source))
    return conflict(action.target, "`" + action.source + "`", text_of(**before));
  if (phase == Phase::look)
    return Outcome::done;
  if (auto unmounted = system.unmount(action); !unmounted)
    return fail(unmounted.error());
  return Outcome::done;
}

} // namespace sharefs::plan
