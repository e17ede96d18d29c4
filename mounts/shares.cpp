#include "mounts/shares.hpp"

#include "base/path.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cerrno>
#include <fmt/format.h>
#include <numeric>
#include <set>

namespace sharefs::mounts {

namespace {

Diagnosis not_allowed(const Share& share, const std::string& what, Severity severity = Severity::error) {
  return about(
      share.point, severity, "SF241", what,
      fmt::format("run `sharefs mount {}` on {}, or as a user who may write in {}; `access:` of its export says "
                  "who that is",
                  name_of(share.point), server_of(share.point), share.point.target));
}

Diagnosis not_usable(const Share& share, std::string why, std::string hint) {
  return about(share.point, Severity::error, "SF243", fmt::format("{} is left as it is: {}", share.path, why),
               std::move(hint));
}

Diagnosis not_usable(const Share& share, const Error& error) {
  const auto& text = error.message;
  const auto prefix = share.path + ": ";
  return not_usable(share, text.starts_with(prefix) ? text.substr(prefix.size()) : text, error.hint);
}

/// Refuses a share in a directory where a whole group may write: a member could replace the new directory before its
/// access is set.
Diagnosis not_safe(const Share& share, const SeenShare& seen) {
  return not_usable(share,
                    Error{ErrorCode::permission,
                          seen.guarded.error().message,
                          "write `sticky: true` in the `access:` of what is above it; without that, its members make "
                          "their directories themselves, and share them by its default ACL",
                          {}});
}

/// Returns the access that mkdir(2) gives: the group of a parent with the set-group-id bit, and the parent's default
/// ACL, are inherited.
plan::Access access_when_made(const plan::Access& above, const sys::Identity& self) {
  constexpr std::uint32_t k_setgid = 02000;
  const auto inherited = above.mode & k_setgid;
  return {self.uid, inherited != 0 ? above.gid : self.gid, 0755 | inherited, above.default_acl};
}

/// Reads a missing directory again. An NFS client remembers for half a minute that a name was missing; opening the
/// parent directory ends that, so that nobody is asked to make a directory that another host has made meanwhile.
void read_missing_again(sys::System& system, SeenShare& seen, std::chrono::milliseconds deadline) {
  const auto path = seen.entry.path;
  const auto entries = system.entries({{{.path = seen.above.path, .list = true, .links = sys::Links::none},
                                        {.path = path, .links = sys::Links::none},
                                        {.path = path, .links = sys::Links::none, .guarded = true}},
                                       deadline,
                                       std::nullopt});
  if (!entries[1].exists())
    return;
  seen.entry = entries[1];
  seen.guarded = entries[2];
}

/// Plans the directories of all shares, then their access.
class SharePlanner {
 public:
  explicit SharePlanner(const sys::Identity& self) : m_self(self) {}

  /// Plans the missing directories of a share. False: its access must not be set.
  bool make(const Share& share, const SeenShare& seen) {
    if (seen.top.kind != sys::EntryKind::directory)
      return refuse(not_usable(share, seen.top.error()));
    if (!share.point.is_in_place() && seen.top.mount != share.point.target) // it was unmounted meanwhile
      return refuse(not_usable(share, "nothing is mounted on " + share.point.target, "run `sharefs status`"));
    if (seen.entry.kind == sys::EntryKind::directory)
      return true;
    if (seen.entry.error_number == EACCES) // only a warning: the share may be right for users who may read it
      return refuse(not_allowed(share, may_not("look at", share), Severity::warning));
    if (seen.entry.kind == sys::EntryKind::unknown)
      return refuse(not_usable(share, seen.entry.error()));
    if (seen.entry.exists() || seen.entry.error_number == ENOTDIR)
      return refuse(not_usable(share, "it is no directory", "move it away, or name another directory in `shares:`"));
    if (seen.guarded.kind == sys::EntryKind::unknown)
      return refuse(not_safe(share, seen));
    if (value_of(share.point.options, "access") == "ro")
      return refuse(not_usable(share, "what is mounted there is read-only here", "make it where it is mounted rw"));
    if (!seen.above.writable)
      return refuse(not_allowed(share, may_not("make", share)));
    for (const auto& path : paths_below(seen.above.resolved, share.path))
      if (m_made.insert(path).second)
        m_result.plan.add(share.point.target,
                          path == share.path ? "a directory of `shares:`" : "above a directory of `shares:`",
                          plan::make_directory(path, 0755, actor(share, seen), true,
                                               parent_path(path) == seen.above.resolved
                                                   ? sys::FileIdentity{seen.above.device, seen.above.inode}
                                                   : sys::FileIdentity{}));
    return true;
  }

  /// Plans the access of a share, if it differs.
  void set_access(const Share& share, const SeenShare& seen) {
    if (seen.failure || !seen.found) {
      refuse(not_usable(share, seen.failure ? *seen.failure : seen.entry.error()));
      return;
    }
    const bool there = seen.entry.exists();
    const auto before = there ? seen.found->access : access_when_made(seen.found->access, m_self);
    auto after = plan::access_after(share.access, before);
    if (!seen.found->acls)
      after.default_acl = before.default_acl;
    if (share.access.kind == plan::DirectoryAccess::Kind::keep || (there && after == before))
      return;
    if (there && before.uid != m_self.uid) {
      refuse(about(share.point, Severity::error, "SF242",
                   fmt::format("{} belongs to uid {} (group {}, mode {}) and is left as it is", share.path, before.uid,
                               before.gid, format_mode(before.mode)),
                   fmt::format("its owner can run `sharefs mount {}`, which gives it the access of `shares:`",
                               name_of(share.point))));
      return;
    }
    if (there && seen.guarded.kind == sys::EntryKind::unknown) {
      refuse(not_safe(share, seen));
      return;
    }
    // `before` is compared for a new directory, too, because somebody else may have made it meanwhile.
    plan::SetAccess change{share.path, before, after, std::nullopt, {}, actor(share, seen)};
    if (there)
      change.identity = {seen.entry.device, seen.entry.inode}; // the owner is compared by `before`
    plan::add_access(m_result.plan, share.point.target, share.path, share.access, std::move(change));
    if (there)
      m_result.plan.steps.back().why +=
          fmt::format("; now uid {}, gid {}, mode {}", before.uid, before.gid, format_mode(before.mode));
    if (share.access.kind == plan::DirectoryAccess::Kind::group && !seen.found->acls)
      m_result.plan.notes.push_back(fmt::format(
          "{}: what is mounted there has no POSIX ACLs (NFS 4 has none), so new files follow the umask of their user: "
          "with 022 the group reads them and cannot write; a default ACL that is set on {} counts for all clients: by "
          "`sharefs mount {}` there, or by `access:` of the export",
          share.path, server_of(share.point), name_of(share.point)));
  }

  SharePlan take() {
    m_result.plan = plan::merge_nested_groups(std::move(m_result.plan));
    return std::move(m_result);
  }

 private:
  [[nodiscard]] std::string may_not(std::string_view what, const Share& share) const {
    return m_self.uid == 0 ? fmt::format("root of this host may not {} {}: {} maps root to nobody (root_squash)", what,
                                         share.path, server_of(share.point))
                           : fmt::format("{} may not {} {}", m_self.user, what, share.path);
  }

  bool refuse(Diagnosis why) {
    m_result.diagnoses.push_back(std::move(why));
    return false;
  }

  [[nodiscard]] plan::Actor actor(const Share& share, const SeenShare& seen) const {
    return {{"", m_self.uid, m_self.gid, {m_self.gid}, ""}, share.point.target, seen.top.device, seen.top.inode};
  }

  const sys::Identity& m_self;
  SharePlan m_result;
  std::set<std::string> m_made;
};

} // namespace

std::vector<SeenShare> probe_shares(sys::System& system, const std::vector<Share>& shares,
                                    std::chrono::milliseconds deadline) {
  if (shares.empty())
    return {};
  sys::EntryRequest request{{}, deadline};
  for (const auto& share : shares) {
    request.queries.push_back({.path = share.point.target, .links = sys::Links::none});
    request.queries.push_back({.path = share.path, .links = sys::Links::none});
    request.queries.push_back({.path = share.path, .links = sys::Links::none, .guarded = true});
  }
  const auto entries = system.entries(request);
  std::vector<SeenShare> seen;
  request.queries.clear();
  for (std::size_t i = 0; i + 2 < entries.size(); i += 3) {
    const auto& one = seen.emplace_back(SeenShare{entries[i], entries[i + 1], entries[i + 2], {}, {}});
    request.queries.push_back({.path = one.entry.kind == sys::EntryKind::missing ? one.entry.ancestor : one.top.path,
                               .access = true,
                               .links = sys::Links::none});
  }
  const auto above = system.entries(request);
  for (std::size_t i = 0; i < seen.size(); ++i) {
    auto& one = seen[i];
    one.above = above[i];
    if (one.entry.kind == sys::EntryKind::missing && !one.above.writable)
      read_missing_again(system, one, deadline);
    const auto& directory = one.entry.exists() ? one.entry : one.above;
    if (directory.kind != sys::EntryKind::directory)
      continue;
    if (auto found = plan::read_access(system, directory.path, false, deadline))
      one.found = std::move(*found);
    else
      one.failure = std::move(found.error());
  }
  return seen;
}

SharePlan plan_shares(const std::vector<Share>& shares, const std::vector<SeenShare>& seen, const sys::Identity& self) {
  // All directories are made before the first gets its access, and the deepest gets its access first: users who may
  // write in an outer directory could replace the directories in it.
  std::vector<std::size_t> order(std::min(shares.size(), seen.size()));
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t index) { return path_depth(shares[index].path); });
  SharePlanner planner(self);
  std::erase_if(order, [&](std::size_t index) { return !planner.make(shares[index], seen[index]); });
  std::ranges::reverse(order);
  for (const auto index : order)
    planner.set_access(shares[index], seen[index]);
  return planner.take();
}

Diagnoses diagnose_made(const plan::Plan& plan, const std::vector<Share>& shares, const std::vector<SeenShare>& after,
                        const sys::Identity& self) {
  std::set<std::string> made;
  for (const auto& step : plan.steps)
    if (const auto* action = std::get_if<plan::Directory>(&step.action); action && action->after)
      made.insert(action->path);
  Diagnoses found;
  for (std::size_t i = 0; i < shares.size() && i < after.size(); ++i)
    if (const auto& entry = after[i].entry; made.contains(shares[i].path) && entry.exists() && entry.uid != self.uid)
      found.push_back(not_allowed(
          shares[i], fmt::format("what {} makes there belongs to uid {}: {} maps {}",
                                 self.user.empty() ? "root" : self.user, entry.uid, server_of(shares[i].point),
                                 self.uid == 0 ? "root to nobody (root_squash)" : "users to another (all_squash)")));
  return found;
}

} // namespace sharefs::mounts
