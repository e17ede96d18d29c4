#include "mounts/plan_mount.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "mounts/diagnose.hpp"
#include "mounts/options.hpp"
#include "mounts/profiles.hpp"

#include <algorithm>
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

/// Of a mount that is right only what is wrong with it is told here; `status` tells the rest.
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
    found.push_back({Severity::error, "SF222", handle(point),
                     fmt::format("mounting {} would hide the mount {}", point.target, hidden.front()->target),
                     "unmount what lies below it first; the outer mount comes first", ""});
  const auto target = seen.targets.find(point.target);
  if (target == seen.targets.end())
    return found;
  const auto& facts = target->second;
  if (!facts.problem.empty())
    found.push_back({Severity::error, "SF221", handle(point),
                     fmt::format("{} cannot be a mount point: {}", point.target, facts.problem),
                     facts.dead_mount.empty() ? "see to the directory first, or change `at:`"
                                              : fmt::format("bring {} back first", facts.dead_mount),
                     ""});
  // The kernel lists a mount at its resolved path: behind a link it would never be found again, and be stacked.
  if (!facts.link.empty())
    found.push_back({Severity::error, "SF221", handle(point),
                     fmt::format("{} cannot be a mount point: {} is a symbolic link to {}", point.target, facts.link,
                                 facts.link_leads_to),
                     "write the real path in `at:`", ""});
  if (facts.entries > 0)
    found.push_back(
        {Severity::warning, "SF210", handle(point),
         fmt::format("{} is not empty: the mount hides {} there", point.target, count_of(facts.entries, "local name")),
         "move them away if they are needed", ""});
  return found;
}

/// Mounts of the request that stand in the way of `index`: the same target again, or an outer one that stays missing.
Diagnoses rivals(const Observation& seen, const std::vector<std::string>& blocked, std::size_t index) {
  const auto& point = seen.states[index].point;
  Diagnoses found;
  for (std::size_t other = 0; other < seen.states.size(); ++other) {
    const auto& its = seen.states[other];
    if (other == index || !its.wanted)
      continue;
    if (its.point.target == point.target && other < index)
      found.push_back({Severity::error, "SF222", handle(point),
                       fmt::format("{} is the mount point of {} too", point.target, handle(its.point)),
                       "give one of them another `at:`", ""});
    const bool stays_missing = std::find(blocked.begin(), blocked.end(), its.point.target) != blocked.end() &&
                               !its.mounted() && its.point.target != point.target;
    if (stays_missing && is_under(point.target, its.point.target))
      found.push_back({Severity::error, "SF222", handle(point),
                       fmt::format("{} lies below {}, which cannot be mounted now", point.target, its.point.target),
                       "it would be hidden as soon as the outer one is mounted", ""});
  }
  return found;
}

/// The planned mount that a target will lie on: the deepest one above it.
std::string planned_above(const std::vector<std::string>& planned, const std::string& target) {
  std::string above;
  for (const auto& one : planned)
    if (one != target && is_under(target, one) && one.size() > above.size())
      above = one;
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
  } else if (const auto target = seen.targets.find(point.target); target != seen.targets.end()) {
    directories = target->second.missing;
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
                     format_options(for_mount(parse_options(point.options))), deadline};
}

MountPlan plan_mounts(const Observation& seen, const std::vector<MountRequest>& wanted,
                      std::chrono::milliseconds deadline) {
  MountPlan result;
  // The outer mount first.
  std::vector<std::size_t> order;
  for (std::size_t index = 0; index < wanted.size() && index < seen.states.size(); ++index)
    order.push_back(index);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return depth(wanted[a].target) < depth(wanted[b].target); });

  std::vector<std::size_t> missing;
  for (const auto index : order) {
    const auto& state = seen.states[index];
    auto found = check_options(wanted[index].options, wanted[index].name);
    append(found, rivals(seen, result.blocked, index));
    const bool understood = !has_errors(found);
    append(found, state.health == Health::missing
                      ? obstacles(seen, state)
                      : without_information(diagnose(state, seen.server(state.point.server))));
    add_once(result.diagnoses, found);
    const auto& target = state.point.target;
    if (state.health == Health::missing && !has_errors(found)) {
      missing.push_back(index);
      result.planned.push_back(target);
    } else if (understood && is_good(state.health) && !has_faults(state.differences)) {
      result.right.push_back(target);
    } else {
      result.blocked.push_back(target);
    }
  }
  std::set<std::string> made;
  for (const auto index : missing) {
    const auto& point = seen.states[index].point;
    add_directories(result.plan, seen, point, planned_above(result.planned, point.target), made);
    auto mount = mount_action(point, deadline);
    auto why = fmt::format("{}, options {}", handle(point), mount.options);
    result.plan.add(point.target, std::move(why), std::move(mount));
    const auto notes = notes_on(point);
    result.plan.notes.insert(result.plan.notes.end(), notes.begin(), notes.end());
    if (wanted[index].boot)
      result.plan.notes.push_back(fmt::format(
          "{}: `boot: auto` is not done by this version: the mount will not come back by itself after a reboot",
          handle(point)));
  }
  result.plan = plan::merge_nested_groups(std::move(result.plan));
  return result;
}

} // namespace sharefs::mounts
