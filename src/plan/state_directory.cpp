#include "base/path.hpp"
#include "base/random.hpp"
#include "plan/journal.hpp"
#include "sys/fs/entry.hpp"

#include <cstdlib>

namespace sharefs::plan {

namespace {

constexpr std::chrono::milliseconds k_deadline{1000}; ///< a home that does not answer in this time is not used
constexpr const char* k_var_tmp = "/var/tmp";

/// True if this user has a directory at `path`, or can make one. (A directory of this user that others may write to
/// counts as usable here and is an error later, because the changes in its journal must not be ignored silently.)
bool is_usable(const sys::Files& files, const std::string& path) {
  const auto opened = PrivateDirectory::open(files, path);
  return opened || opened.error().code != ErrorCode::permission;
}

/// Everybody may make any name in /var/tmp, but nobody can make a directory that belongs to another user. So the
/// directory of this user is found again by its owner.
std::string find_in_var_tmp(const sys::Files& files, uid_t uid) {
  const auto name = "sharefs-" + std::to_string(uid);
  auto path = join_path(k_var_tmp, name);
  if (is_usable(files, path))
    return path;
  for (const auto& other : files.list(k_var_tmp).value_or(std::vector<std::string>{}))
    if (other.starts_with(name + "-") && is_usable(files, join_path(k_var_tmp, other)))
      return join_path(k_var_tmp, other);
  return path + "-" + random_letters(8);
}

} // namespace

std::string state_directory(const sys::Files& files, const sys::Identity& identity, const sys::MountTable& mounts) {
  if (identity.uid == 0)
    return "/var/lib/sharefs";
  const char* given = std::getenv("XDG_STATE_HOME");
  const bool has_home = identity.home.starts_with('/') && identity.home != "/" &&
                        files.entry({.path = identity.home, .follow = true}).kind !=
                            sys::EntryKind::missing; // a service account has no home
  const std::string base = given != nullptr && given[0] == '/' ? std::string(given)
                           : has_home                          ? join_path(identity.home, ".local/state")
                                                               : std::string();
  // Most homes are shared, but a journal is about one host, and two hosts must not share it.
  const auto on_this_host = [&mounts](const std::string& path) {
    const sys::EntryRequest request{{{.path = path, .follow = true}}, k_deadline};
    const auto entry = sys::read_entries(sys::Files(), mounts, request).front();
    return entry.kind != sys::EntryKind::unknown && !entry.shared;
  };
  if (!base.empty() && on_this_host(base))
    return normalize_path("sharefs", base);
  return find_in_var_tmp(files, identity.uid);
}

} // namespace sharefs::plan
