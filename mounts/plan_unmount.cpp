#include "mounts/plan_unmount.hpp"

#include "base/argv.hpp"
#include "base/path.hpp"
#include "base/text.hpp"
#include "mounts/compare.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace sharefs::mounts {

namespace {

constexpr const char* k_force_note =
    "--force: requests that wait for the server fail with an I/O error; data that was not yet written is lost";
constexpr const char* k_lazy_note =
    "--lazy: the mount leaves the tree at once, with everything mounted below it; programs that use it keep it until "
    "they end";

std::vector<std::string> targets_of(const std::vector<const sys::MountEntry*>& mounts) {
  std::vector<std::string> names;
  for (const auto* mount : mounts)
    names.push_back(mount->target);
  return names;
}

Diagnosis no_mount_here(const sys::MountTable& table, const MountPoint& target) {
  std::vector<std::string> known;
  for (const auto& entry : table.entries())
    if (sys::is_nfs(entry))
      known.push_back(entry.target);
  const auto* owner = table.owner_of(target.target);
  auto hint = did_you_mean_hint(target.target, known);
  if (hint.empty())
    hint = "run `sharefs status` to see what is mounted";
  if (owner != nullptr && sys::is_nfs(*owner))
    hint =
        fmt::format("it lies on the NFS mount {}: run `sharefs umount {}`", owner->target, shell_quote(owner->target));
  return {Severity::error, "SF217", name_of(target), fmt::format("nothing is mounted on {}", target.target), hint, ""};
}

} // namespace

plan::Unmount unmount_action(const sys::MountEntry& mount, const UnmountOptions& options) {
  plan::Unmount action;
  action.target = mount.target;
  action.force = options.force;
  action.lazy = options.lazy;
  action.source = mount.source;
  action.fs_type = mount.fs_type;
  action.options = remount_options(mount);
  action.deadline = options.deadline;
  return action;
}

UnmountPlan plan_unmounts(const sys::MountTable& table, const std::vector<MountPoint>& targets,
                          const std::vector<PendingMount>& pending, const UnmountOptions& options) {
  UnmountPlan result;
  std::set<std::string> selected;
  for (const auto& target : targets)
    selected.insert(target.target);
  auto ordered = targets;
  std::stable_sort(ordered.begin(), ordered.end(), [](const MountPoint& a, const MountPoint& b) {
    return ancestors_and_self(a.target).size() > ancestors_and_self(b.target).size();
  });
  for (const auto& target : ordered) {
    for (const auto& one : pending)
      if (one.target == target.target)
        result.diagnoses.push_back(
            {Severity::warning, "SF218", name_of(target),
             fmt::format("`mount.nfs` (pid {}) keeps trying to mount {} there and may succeed after this", one.pid,
                         one.source),
             fmt::format("end it first: kill {}", one.pid), ""});
    const auto* top = table.at(target.target);
    if (top == nullptr || top->fs_type == "autofs") {
      if (target.name.empty() && top == nullptr) {
        result.diagnoses.push_back(no_mount_here(table, target));
        result.blocked.push_back(target.target);
      } else {
        result.gone.push_back(target.target);
      }
      continue;
    }
    if (!sys::is_nfs(*top)) {
      result.diagnoses.push_back({Severity::error, "SF223", name_of(target),
                                  fmt::format("{} is a mount of type {}, not NFS", target.target, top->fs_type),
                                  "sharefs unmounts NFS only: use umount(8)", ""});
      result.blocked.push_back(target.target);
      continue;
    }
    auto inner = nested(table, target.target);
    std::erase_if(inner, [&](const sys::MountEntry* one) { return selected.contains(one->target); });
    if (!inner.empty() && !options.lazy) {
      result.diagnoses.push_back(
          {Severity::error, "SF224", name_of(target),
           fmt::format("other mounts lie below {}: {}", target.target, join(targets_of(inner), ", ")),
           "unmount them too, or use --lazy, which detaches them all", ""});
      result.blocked.push_back(target.target);
      continue;
    }
    if (!inner.empty())
      result.plan.notes.push_back(fmt::format("detached with {}: {}", target.target, join(targets_of(inner), ", ")));
    for (const auto* layer : layers(table, target.target))
      result.plan.add(target.target, fmt::format("mounted from {}", layer->source), unmount_action(*layer, options));
    result.planned.push_back(target.target);
  }
  if (!result.plan.empty() && options.force)
    result.plan.notes.emplace_back(k_force_note);
  if (!result.plan.empty() && options.lazy)
    result.plan.notes.emplace_back(k_lazy_note);
  result.plan = plan::merge_nested_groups(std::move(result.plan));
  return result;
}

} // namespace sharefs::mounts
