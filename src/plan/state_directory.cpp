#include "base/path.hpp"
#include "plan/journal.hpp"
#include "sys/fs/resolve.hpp"

#include <cstdlib>

namespace sharefs::plan {

std::string state_directory(const sys::Identity& identity, const sys::MountTable& mounts) {
  if (identity.uid == 0)
    return "/var/lib/sharefs";
  const char* given = std::getenv("XDG_STATE_HOME");
  const bool has_home = identity.home.starts_with('/') && identity.home != "/";
  const std::string base = given != nullptr && given[0] == '/' ? std::string(given)
                           : has_home                          ? join_path(identity.home, ".local/state")
                                                               : std::string();
  // Homes are shared more often than not, and a journal is about one host: two hosts must not share it. Links are
  // followed only as far as they lie on this host's own disks; what lies behind a shared mount is never looked at.
  sys::Resolver resolver(
      mounts, [](const std::string& path) { return sys::look_at_local(sys::Files(), path); },
      [](const std::vector<std::string>& paths) { return std::vector<sys::Seen>(paths.size()); });
  if (!base.empty() && !resolver.resolve(base).shared)
    return normalize_path("sharefs", base);
  return "/var/tmp/sharefs-" + std::to_string(identity.uid);
}

} // namespace sharefs::plan
