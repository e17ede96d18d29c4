// Mount and Unmount, by System; what is there is judged by the mount table, never by an exit code.
#include "base/path.hpp"
#include "base/text.hpp"
#include "plan/perform.hpp"

namespace sharefs::plan {

namespace {

/// nfs and nfs4 are one kind of mount: which of the two the table shows depends on the negotiated version.
bool same_family(const std::string& a, const std::string& b) {
  const auto is_nfs_type = [](const std::string& type) { return type == "nfs" || type == "nfs4"; };
  return a == b || (is_nfs_type(a) && is_nfs_type(b));
}

/// `server:/path/` and `server:/path` are one source.
std::string plain_source(std::string source) {
  while (source.size() > 1 && source.back() == '/' && source[source.size() - 2] != ':')
    source.pop_back();
  return source;
}

bool same_source(const std::string& a, const std::string& b) {
  return plain_source(a) == plain_source(b);
}

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

bool goes_to_background(const std::string& options) {
  const auto list = split(options, ',');
  return std::find(list.begin(), list.end(), "bg") != list.end();
}

} // namespace

Result<Outcome> act(Mount& action, sys::System& system, Phase phase) {
  const auto before = mounted_at(system, action.target);
  if (!before)
    return fail(before.error());
  const auto is_wanted = [&action](const sys::MountEntry& mount) {
    return same_source(mount.source, action.source) && same_family(mount.fs_type, action.fs_type);
  };
  if (*before && is_wanted(**before))
    return Outcome::unchanged;
  if (*before)
    return conflict(action.target, "no mount", text_of(**before));
  if (phase == Phase::look)
    return Outcome::done;
  auto mounted = system.mount({action.source, action.target, action.fs_type, action.options, action.deadline});
  if (!mounted)
    return fail(mounted.error());
  const auto after = mounted_at(system, action.target);
  if (!after)
    return fail(after.error());
  if (*after && is_wanted(**after))
    return Outcome::done;
  if (goes_to_background(action.options))
    return fail(ErrorCode::timeout,
                action.target + ": the server does not answer, mount.nfs goes on trying in the background (bg)",
                "run `sharefs probe " + action.source.substr(0, action.source.find(":/")) + "` to see what is missing");
  return fail(ErrorCode::failed, action.target +
                                     ": the mount command reported success, but the mount table does not show " + "`" +
                                     action.source + "` there");
}

Result<Outcome> act(Unmount& action, sys::System& system, Phase phase) {
  const auto before = mounted_at(system, action.target);
  if (!before)
    return fail(before.error());
  if (!*before)
    return Outcome::unchanged;
  if (!action.source.empty() && !same_source((*before)->source, action.source))
    return conflict(action.target, "`" + action.source + "`", text_of(**before));
  if (phase == Phase::look)
    return Outcome::done;
  if (auto unmounted = system.unmount({action.target, action.force, action.lazy, action.deadline}); !unmounted)
    return fail(unmounted.error());
  return Outcome::done;
}

} // namespace sharefs::plan
