#include "mounts/plan_mount.hpp"

#include "base/argv.hpp"
#include "base/path.hpp"
#include "base/text.hpp"
#include "mounts/compare.hpp"
#include "mounts/diagnose.hpp"
#include "mounts/options.hpp"
#include "mounts/profiles.hpp"

#include <algorithm>
#include <cerrno>
#include <fmt/format.h>
#include <functional>
#include <map>
#include <set>

namespace sharefs::mounts {

namespace {

/// Collects diagnoses. A diagnosis that several mounts share (their server is dead) is kept once, with all their names.
class DiagnosisCollector {
 public:
  void add(const Diagnoses& found) {
    for (const auto& one : found) {
      const auto [at, is_new] = m_places.emplace(one.code + one.message, m_all.size());
      if (is_new)
        m_all.push_back(one);
      else if (auto& subject = m_all[at->second].subject; subject != one.subject)
        subject += ", " + one.subject;
    }
  }
  Diagnoses take() { return std::move(m_all); }

 private:
  Diagnoses m_all;
  std::map<std::string, std::size_t> m_places;
};

/// Removes diagnoses that are only information: `mount` does not report these, `status` does.
Diagnoses without_information(Diagnoses found) {
  std::erase_if(found, [](const Diagnosis& one) { return one.severity == Severity::info; });
  return found;
}

/// Finds reasons not to make this mount, and warnings about it.
Diagnoses find_obstacles(const Observation& seen, const MountState& state) {
  const auto& point = state.point;
  auto found = point.here ? Diagnoses() : preflight(point, seen.server(point));
  if (const auto hidden = seen.table.below(point.target); !hidden.empty())
    found.push_back(about(point, Severity::error, "SF222",
                          fmt::format("mounting {} would hide the mount {}", point.target, hidden.front()->target),
                          "unmount what lies below it first; the outer mount comes first"));
  if (const auto& disk = state.absent_disk)
    found.push_back(about(point, Severity::error, "SF148",
                          fmt::format("the file system of {} is not mounted ({}): this server would work in the "
                                      "bare directory below it",
                                      point.path, disk->origin),
                          sys::hint_to_mount(*disk)));
  if (!state.answer)
    return found;
  const auto& entry = *state.answer;
  const auto unusable = [&](const std::string& why, std::string hint) {
    found.push_back(about(point, Severity::error, "SF221",
                          fmt::format("{} cannot be a mount point: {}", point.target, why), std::move(hint)));
  };
  if (entry.hung() || entry.error_number == ESTALE)
    unusable(fmt::format("it lies on {}, which is {}", entry.mount, entry.hung() ? "hung" : "stale"),
             fmt::format("bring {} back first", entry.mount));
  // The mount table has the resolved path of a mount. So a mount at a link would not be found, and be mounted again.
  else if (entry.kind == sys::EntryKind::symlink)
    unusable("it is a symbolic link to " + entry.link_target, "write the real path in `at:`");
  else if (entry.kind == sys::EntryKind::unknown)
    unusable(entry.detail, "write the real path in `at:`, of a directory that root can reach");
  else if (entry.exists() ? entry.kind != sys::EntryKind::directory : entry.error_number == ENOTDIR)
    unusable("there is a file, or one above it", "move the file away, or change `at:`");
  if (!entry.names.empty())
    found.push_back(about(point, Severity::warning, "SF210",
                          fmt::format("{} is not empty: the mount hides {} there", point.target,
                                      count_of(entry.names.size(), "local name")),
                          "move them away if they are needed"));
  return found;
}

/// The mounts for which plan_mounts() has decided so far, outer mounts first.
struct Decided {
  std::map<std::string, std::string> names; ///< names of the mounts, by target
  std::set<std::string> planned;            ///< targets that the plan mounts
  std::set<std::string> missing;            ///< targets that stay without a mount
};

/// Finds conflicts with other mounts of the request: the same target, or an outer mount that stays missing.
Diagnoses find_conflicts(const Decided& decided, const MountPoint& point) {
  Diagnoses found;
  if (const auto same = decided.names.find(point.target); same != decided.names.end())
    found.push_back(about(point, Severity::error, "SF222",
                          fmt::format("{} is the mount point of {} too", point.target, same->second),
                          "give one of them another `at:`"));
  if (const auto outer = find_outer(decided.missing, point.target); !outer.empty())
    found.push_back(about(point, Severity::error, "SF222",
                          fmt::format("{} lies below {}, which cannot be mounted now", point.target, outer),
                          "it would be hidden as soon as the outer one is mounted"));
  return found;
}

/// Adds the steps that make the target and the directories above it. Directories above it are made before all groups,
/// so that mounts with a common parent need not share a group. Directories below another mount of this plan are made
/// after it is mounted.
void add_directories(plan::Plan& plan, const MountState& state, const std::string& outer, std::set<std::string>& made) {
  const auto& point = state.point;
  const auto& target = state.answer;
  if (outer.empty() && !target)
    return;
  const bool exists = outer.empty() && target->exists();
  const auto& there = outer.empty() ? target->ancestor : outer;
  for (const auto& path : exists ? std::vector<std::string>() : paths_below(there, point.target)) {
    if (!made.insert(path).second)
      continue;
    const bool shared = outer.empty() && path != point.target;
    plan.add(shared ? "" : point.target, path == point.target ? "the mount point" : "above the mount point",
             plan::make_directory(path));
  }
  // Files that are written while nothing is mounted would be on this host's own disk, and hidden later. If the mount
  // comes back at boot, such a write can only be a mistake. A target below another mount is not on the own disk. Where
  // files lie already, they are used, and would stay unchangeable if the mount fails.
  if (outer.empty() && point.boot != BootWay::none && !target->shared && target->names.empty())
    plan.add(point.target, "while nothing is mounted there",
             exists ? plan::SetImmutable{point.target, true, target->device, target->inode}
                    : plan::SetImmutable{point.target});
}

} // namespace

void add_mount_step(plan::Plan& plan, const std::string& group, const MountPoint& point) {
  if (point.here) {
    const auto options = bind_options(point.options);
    plan.add(group, fmt::format("{}, a directory of this host, options {}", name_of(point), options),
             plan::Mount{point.path, point.target, sys::k_bind, options});
    return;
  }
  const auto options = format_options(for_mount(point.options));
  plan::Mount mount{format_source(point.server, point.path), point.target, "nfs", options};
  mount.server = server_of(point);
  plan.add(group, fmt::format("{}, options {}", name_of(point), options), std::move(mount));
}

MountPlan plan_mounts(const Observation& seen, bool remount) {
  MountPlan result;
  std::vector<const MountState*> ordered;
  for (const auto& state : seen.states)
    if (state.wanted)
      ordered.push_back(&state);
  std::ranges::stable_sort(ordered, {}, [](const MountState* state) { return path_depth(state->point.target); });

  Decided decided;
  DiagnosisCollector collector;
  std::vector<const MountState*> missing;
  for (const auto* const one : ordered) {
    const auto& state = *one;
    const auto& target = state.point.target;
    auto found = check_options(state.own_options, state.point.name);
    append(found, find_conflicts(decided, state.point));
    const bool understood = !has_errors(found);
    const bool to_mount = state.health == Health::missing && !state.point.is_in_place();
    if (remount && understood && state.mounted() && state.stacked == 0 && has_faults(state.differences) &&
        can_remount(state.differences) && (is_good(state.health) || state.health == Health::read_only)) {
      result.plan.add(target, describe(state.differences),
                      plan::Remount{target, sys::restrictions_of(*state.mount),
                                    sys::restrictions_in(bind_options(state.point.options))});
      decided.names.emplace(target, name_of(state.point));
      result.planned.push_back(target);
      continue;
    }
    append(found,
           to_mount ? find_obstacles(seen, state) : without_information(diagnose(state, seen.server(state.point))));
    collector.add(found);
    decided.names.emplace(target, name_of(state.point));
    if (to_mount && !has_errors(found)) {
      missing.push_back(&state);
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
  result.diagnoses = collector.take();
  std::set<std::string> made;
  for (const auto* state : missing) {
    const auto& point = state->point;
    add_directories(result.plan, *state, find_outer(decided.planned, point.target), made);
    add_mount_step(result.plan, point.target, point);
    append(result.plan.notes, mount_notes(point));
  }
  result.plan = plan::merge_nested_groups(std::move(result.plan));
  return result;
}

Diagnoses diagnose_mounted(sys::System& system, const Observation& before, const std::set<std::string>& mounted,
                           std::chrono::milliseconds deadline) {
  ProbeRequest request;
  request.servers = false;
  request.path_deadline = deadline;
  for (const auto& state : before.states)
    if (mounted.contains(state.point.target))
      request.wanted.push_back(state.point);
  auto after = request.wanted.empty() ? Result<Observation>(Observation{}) : probe(system, request);
  if (!after)
    return {};
  after->servers = before.servers;
  return diagnose(*after);
}

namespace {

constexpr const char* k_force_note =
    "--force: requests that wait for the server fail with an I/O error; data that was not yet written is lost";
constexpr const char* k_lazy_note =
    "--lazy: the mount leaves the tree at once, with everything mounted below it; programs that use it keep it until "
    "they end";

std::string hint_for_no_mount(const sys::MountTable& table, const std::string& target) {
  if (const auto* owner = table.owner_of(target); owner != nullptr && sys::is_nfs(*owner))
    return fmt::format("it lies on the NFS mount {}: run `sharefs umount {}`", owner->target,
                       shell_quote(owner->target));
  std::vector<std::string> known;
  for (const auto& entry : table.entries())
    if (sys::is_nfs(entry))
      known.push_back(entry.target);
  return did_you_mean_hint(target, known, "run `sharefs status` to see what is mounted");
}

} // namespace

plan::Unmount unmount_action(const sys::MountEntry& mount, const UnmountOptions& options) {
  return {mount.target,  options.force,          options.lazy,    mount.source,
          mount.fs_type, remount_options(mount), options.deadline};
}

MountPlan plan_unmounts(const sys::MountTable& table, const std::vector<MountPoint>& targets,
                        const std::vector<PendingMount>& pending, const UnmountOptions& options) {
  MountPlan result;
  std::set<std::string> selected;
  for (const auto& target : targets)
    selected.insert(target.target);
  auto ordered = targets; // the inner mounts first
  std::ranges::stable_sort(ordered, std::greater(), [](const MountPoint& one) { return path_depth(one.target); });
  for (const auto& point : ordered) {
    const auto& target = point.target;
    const auto block = [&](std::string code, std::string message, std::string hint) {
      result.diagnoses.push_back(about(point, Severity::error, std::move(code), std::move(message), std::move(hint)));
      result.blocked.push_back(target);
    };
    for (const auto& one : pending)
      if (one.target == target)
        result.diagnoses.push_back(
            about(point, Severity::warning, "SF218",
                  fmt::format("`mount.nfs` (pid {}) keeps trying to mount {} there and may succeed after this", one.pid,
                              one.source),
                  cure_of(one)));
    const auto* top = table.at(target);
    if (top == nullptr && point.name.empty()) {
      block("SF217", fmt::format("nothing is mounted on {}", target), hint_for_no_mount(table, target));
      continue;
    }
    if (top == nullptr || top->fs_type == "autofs") {
      result.right.push_back(target);
      continue;
    }
    const bool bound = !point.path.empty() && table.is_bind(target, point.path);
    if (point.is_in_place() && !sys::is_nfs(*top)) {
      result.right.push_back(target); // a disk of this server, mounted at the path that clients use
      continue;
    }
    if (!bound && !sys::is_nfs(*top)) {
      block("SF223", fmt::format("{} is a mount of type {}, not NFS", target, top->fs_type),
            "sharefs unmounts what it mounts, and leaves other file systems alone");
      continue;
    }
    const auto mounts = find_mounts_at(table, target);
    std::vector<std::string> inner;
    for (const auto* one : mounts.below)
      if (!selected.contains(one->target) && !options.go_first.contains(one->target))
        inner.push_back(one->target);
    if (!inner.empty() && !options.lazy) {
      block("SF224", fmt::format("other mounts lie below {}: {}", target, join(inner, ", ")),
            "unmount them too, or use --lazy, which detaches them all");
      continue;
    }
    if (!inner.empty())
      result.plan.notes.push_back(fmt::format("detached with {}: {}", target, join(inner, ", ")));
    if (bound)
      result.plan.add(
          target, fmt::format("bound to {}", point.path),
          plan::Unmount{target, options.force, options.lazy, point.path, sys::k_bind, top->options, options.deadline});
    for (const auto* layer : mounts.layers)
      result.plan.add(target, fmt::format("mounted from {}", layer->source), unmount_action(*layer, options));
    result.planned.push_back(target);
  }
  if (!result.plan.empty() && options.force)
    result.plan.notes.emplace_back(k_force_note);
  if (!result.plan.empty() && options.lazy)
    result.plan.notes.emplace_back(k_lazy_note);
  result.plan = plan::merge_nested_groups(std::move(result.plan));
  return result;
}

} // namespace sharefs::mounts
