// Plans the directories of caches.local, in which each user makes one of their own.
#include "base/path.hpp"
#include "base/text.hpp"
#include "cachefix/store/local_root.hpp"
#include "plan/directory_access.hpp"

#include <fmt/format.h>

namespace sharefs::cachefix {

namespace {

constexpr const char* k_caches_group = "caches";
constexpr std::uint32_t k_open_to_users = 01777, k_sticky = 01000, k_others_write = 022;

/// Adds the steps that make the missing directories of a path, from the top. They are named by the real path, because a
/// link in the path is no directory.
void plan_missing(sys::System& system, const sys::Entry& missing, plan::Plan& plan) {
  const auto paths = paths_below(missing.ancestor, missing.resolved);
  const auto above = system.entry({.path = missing.ancestor, .links = sys::Links::trusted});
  for (const auto& path : paths) {
    const bool last = path == missing.resolved;
    plan.add(k_caches_group, last ? "`caches.local`: each user makes a directory in it" : "`caches.local` lies in it",
             plan::make_directory(path, last ? k_open_to_users : 0755, std::nullopt, true,
                                  path == paths.front() ? sys::FileIdentity{above.device, above.inode}
                                                        : sys::FileIdentity{}));
  }
}

/// Describes why the target of a link is not used. It may lie on a disk that is not mounted now, so it is neither made
/// nor opened to users.
std::string link_fault(const sys::Entry& target) {
  if (target.kind == sys::EntryKind::unknown)
    return target.error().message;
  return fmt::format("it is a link to {}, which {}", target.resolved,
                     target.kind == sys::EntryKind::missing ? "does not exist"
                     : target.kind != sys::EntryKind::directory
                         ? "is no directory"
                         : fmt::format("has mode {} instead of 1777", format_mode(target.mode)));
}

/// Adds the steps that make what root needs in this directory, in which every user may take a name.
void plan_of_root(sys::System& system, const std::string& directory, const std::set<std::string>& of_root,
                  plan::Plan& plan) {
  std::set<std::string> firsts;
  for (const auto& path : of_root)
    if (path != directory && is_under(path, directory))
      firsts.insert(paths_below(directory, path).front());
  for (const auto& path : firsts)
    if (system.entry({.path = path, .links = sys::Links::trusted}).kind == sys::EntryKind::missing)
      plan.add_bookkeeping(k_caches_group, "root's own, before a user takes its name",
                           plan::make_directory(path, 0755, std::nullopt, true));
}

} // namespace

plan::Plan plan_local_directories(sys::System& system, const std::vector<std::string>& directories,
                                  const std::set<std::string>& of_root,
                                  const std::function<std::string(const std::string&)>& kept) {
  plan::Plan plan;
  for (const auto& path : directories) {
    if (path.find('$') != std::string::npos) // the path differs in each job
      continue;
    auto entry = system.entry({.path = path, .links = sys::Links::trusted, .guarded = true});
    const bool is_link = entry.kind == sys::EntryKind::symlink;
    if (is_link) // `run` follows a link of root, too
      entry = system.entry({.path = path, .follow = true, .links = sys::Links::trusted, .guarded = true});
    const bool directory = entry.kind == sys::EntryKind::directory;
    const bool open = directory && (entry.mode & k_sticky) != 0 && (entry.mode & k_others_write) != 0;
    if (entry.shared) // `doctor` and `run` report it
      continue;
    if (open) {
      plan_of_root(system, path, of_root, plan);
      continue;
    }
    std::string why = is_link ? link_fault(entry) : kept(path);
    if (why.empty() && entry.kind == sys::EntryKind::missing) {
      plan_missing(system, entry, plan);
      plan_of_root(system, path, of_root, plan);
      continue;
    }
    if (why.empty())
      why = entry.kind == sys::EntryKind::unknown ? entry.error().message
            : !directory                          ? "it is no directory"
            : entry.uid != 0 ? fmt::format("it belongs to uid {} and has mode {}, so that users cannot use it safely",
                                           entry.uid, format_mode(entry.mode))
                             : "";
    const auto found = why.empty() ? plan::read_access(system, path, true) : fail(ErrorCode::failed, why);
    if (!found) {
      plan.notes.push_back(fmt::format("{} (`caches.local`) is left as it is: {}", path, found.error().message));
      continue;
    }
    auto after = found->access;
    after.mode = k_open_to_users;
    plan.add(k_caches_group,
             fmt::format("`caches.local`: each user makes a directory in it, which mode {} does not allow",
                         format_mode(entry.mode)),
             plan::SetAccess{.path = path, .before = found->access, .after = after, .identity = identity_of(entry)});
    plan_of_root(system, path, of_root, plan);
  }
  return plan;
}

} // namespace sharefs::cachefix
