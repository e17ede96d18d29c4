#include "mounts/plan_mount.hpp"

#include "base/argv.hpp"
#include "base/path.hpp"
#include "base/text.hpp"
#include "mounts/compare.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <set>

namespace sharefs::mounts {

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
                  fmt::format("end it first: kill {}", one.pid)));
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
