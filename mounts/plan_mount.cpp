#include "mounts/plan_mount.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "mounts/diagnose.hpp"
#include "mounts/options.hpp"
#include "mounts/profiles.hpp"

#include <algorithm>
#include <cerrno>
#include <fmt/format.h>
#include <set>

namespace sharefs::mounts {

namespace {

void append(Diagnoses& all, const Diagnoses& more) {
  all.insert(all.end(), more.begin(), more.end());
}

/// The same said about several mounts (their server is dead) is said once, with all of their names as the subject.
void add_once(Diagnoses& all, const Diagnoses& more) {
  for (const auto& one : more) {
    const auto same = std::find_if(all.begin(), all.end(), [&](const Diagnosis& said) {
      return said.code == one.code && said.message == one.message;
    });
    if (same == all.end())
      all.push_back(one);
    else if (same->subject != one.subject)
      same->subject += ", " + one.subject;
  }
}

/// Of a mount that is right only what is wrong with it is reported here; `status` reports the rest.
Diagnoses without_information(Diagnoses found) {
  std::erase_if(found, [](const Diagnosis& one) { return one.severity == Severity::info; });
  return found;
}

std::size_t depth(const std::string& target) {
  return ancestors_and_self(target).size();
}

/// What forbids this mount, or is worth a warning before it.
Diagnoses obstacles(const Observation& seen, const MountState& state) {
  const auto& point = state.point;
  auto found = preflight(point, seen.server(point.server));
  if (const auto hidden = seen.table.below(point.target); !hidden.empty())
    found.push_back({Severity::error, "SF222", name_of(point),
                     fmt::format("mounting {} would hide the mount {}", point.target, hidden.front()->target),
                     "unmount what lies below it first; the outer mount comes first", ""});
  const auto target = seen.targets.find(point.target);
  if (target == seen.targets.end())
    return found;
  const auto& entry = target->second;
  const auto unusable = [&](const std::string& why, std::string hint) {
    found.push_back({Severity::error, "SF221", name_of(point),
                     fmt::format("{} cannot be a mount point: {}", point.target, why), std::move(hint), ""});
  };
  if (entry.hung() || entry.error_number == ESTALE)
    unusable(fmt::format("it lies on {}, which is {}", entry.mount, entry.hung() ? "hung" : "stale"),
             fmt::format("bring {} back first", entry.mount));
  // The kernel lists a mount at its resolved path: behind a link it would never be found again, and be stacked.
  else if (entry.kind == sys::EntryKind::symlink)
    unusable("it is a symbolic link to " + entry.link_target, "write the real path in `at:`");
  else if (entry.kind == sys::EntryKind::unknown)
    unusable(entry.detail, "write the real path in `at:`, of a directory that root can reach");
  else if (entry.exists() ? entry.kind != sys::EntryKind::directory : entry.error_number == ENOTDIR)
    unusable("there is a file, or one above it", "move the file away, or change `at:`");
  if (!entry.names.empty())
    found.push_back({Severity::warning, "SF210", name_of(point),
                     fmt::format("{} is not empty: the mount hides {} there", point.target,
                                 count_of(entry.names.size(), "local name")),
                     "move them away if they are needed", ""});
  return found;
}

/// What was decided so far, outer mounts first.
struct Decided {
  std::map<std::string, std::string> names; ///< of all wanted mounts, by target
  std::set<std::string> planned;            ///< targets
  std::set<std::string> missing;            ///< targets that stay without a mount
};

/// Mounts of the request that stand in the way: the same target again, or an outer one that stays missing.
Diagnoses rivals(const Decided& decided, const MountPoint& point) {
  Diagnoses found;
  if (const auto same = decided.names.find(point.target); same != decided.names.end())
    found.push_back({Severity::error, "SF222", name_of(point),
                     fmt::format("{} is the mount point of {} too", point.target, same->second),
                     "give one of them another `at:`", ""});
  for (const auto& path : ancestors_and_self(parent_path(point.target)))
    if (decided.missing.contains(path))
      found.push_back({Severity::error, "SF222", name_of(point),
                       fmt::format("{} lies below {}, which cannot be mounted now", point.target, path),
                       "it would be hidden as soon as the outer one is mounted", ""});
  return found;
}

/// The planned mount that a target will lie on: the deepest one above it.
std::string planned_above(const Decided& decided, const std::string& target) {
  std::string above;
  for (const auto& path : ancestors_and_self(parent_path(target)))
    if (decided.planned.contains(path))
      above = path;
  return above;
}

/// Directories above the target are made before all groups, so that mounts with a common one need not share a group.
/// Below a mount of this very plan they are made when that is there.
void add_directories(plan::Plan& plan, const Observation& seen, const MountPoint& point, const std::string& above,
                     std::set<std::string>& made) {
  std::vector<std::string> directories;
  if (!above.empty()) {
    for (const auto& path : ancestors_and_self(point.target))
      if (path != above && is_under(path, above))
        directories.push_back(path);
  } else if (const auto target = seen.targets.find(point.target);
             target != seen.targets.end() && !target->second.exists()) {
    for (const auto& path : ancestors_and_self(point.target))
      if (!is_under(target->second.ancestor, path))
        directories.push_back(path);
  }
  for (const auto& path : directories) {
    const bool shared = above.empty() && path != point.target;
    if (!made.insert(path).second)
      continue;
    plan.add(shared ? "" : point.target, "the mount point", plan::MakeDirectory{path, 0755, std::nullopt});
  }
}

} // namespace

plan::Mount mount_action(const MountPoint& point, std::chrono::milliseconds deadline) {
  return plan::Mount{format_source(point.server, point.path), point.target, "nfs",
                     format_options(for_mount(point.options)), deadline};
}

MountPlan plan_mounts(const Observation& seen, const std::vector<MountPoint>& wanted,
                      std::chrono::milliseconds deadline) {
  MountPlan result;
  // The outer mount first.
  std::vector<std::size_t> order;
  for (std::size_t index = 0; index < wanted.size() && index < seen.states.size(); ++index)
    order.push_back(index);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return depth(wanted[a].target) < depth(wanted[b].target); });

  Decided decided;
  std::vector<std::size_t> missing;
  for (const auto index : order) {
    const auto& state = seen.states[index];
    const auto& target = state.point.target;
    auto found = check_options(wanted[index].options, wanted[index].name);
    append(found, rivals(decided, state.point));
    const bool understood = !has_errors(found);
    append(found, state.health == Health::missing
                      ? obstacles(seen, state)
                      : without_information(diagnose(state, seen.server(state.point.server))));
    add_once(result.diagnoses, found);
    decided.names.emplace(target, name_of(state.point));
    if (state.health == Health::missing && !has_errors(found)) {
      missing.push_back(index);
      decided.planned.insert(target);
      result.planned.push_back(target);
    } else if (understood && is_good(state.health) && !has_faults(state.differences)) {
      result.right.push_back(target);
    } else {
      result.blocked.push_back(target);
      if (!state.mounted())
        decided.missing.insert(target);
    }
  }
  std::set<std::string> made;
  for (const auto index : missing) {
    const auto& point = seen.states[index].point;
    add_directories(result.plan, seen, point, planned_above(decided, point.target), made);
    auto mount = mount_action(point, deadline);
    auto why = fmt::format("{}, options {}", name_of(point), mount.options);
    result.plan.add(point.target, std::move(why), std::move(mount));
    const auto notes = notes_on(point);
    result.plan.notes.insert(result.plan.notes.end(), notes.begin(), notes.end());
    if (point.boot)
      result.plan.notes.push_back(fmt::format(
          "{}: `boot: auto` is not done by this version: the mount will not come back by itself after a reboot",
          name_of(point)));
  }
  result.plan = plan::merge_nested_groups(std::move(result.plan));
  return result;
}

} // namespace sharefs::mounts
