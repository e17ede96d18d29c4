// Takes entries at boot away again: those of mounts that are forgotten, and those of a change of a boot file that is
// undone after somebody has edited the file.
#include "base/path.hpp"
#include "mounts/boot.hpp"
#include "mounts/boot_text.hpp"
#include "sys/configured_mounts.hpp"

#include <algorithm>

namespace sharefs::mounts {

namespace {

/// Returns the changes that turn the texts `from` into the texts `to`.
BootTexts changes_between(const BootTexts& from, const BootTexts& to) {
  BootTexts changes;
  for (const auto& [target, text] : from)
    changes.emplace(target, std::nullopt);
  for (const auto& [target, text] : to)
    changes.insert_or_assign(target, text);
  std::erase_if(changes, [&](const auto& change) {
    const auto before = from.find(change.first);
    return before != from.end() && before->second == change.second;
  });
  return changes;
}

/// Returns the content that the file gets instead of `now`; nullopt: the file is removed, because the undone change
/// made it and nothing else is left in it.
std::optional<std::string> new_content(const plan::File& step, const std::string& now, BootFile file) {
  const auto before = our_texts(file, step.before.value_or("")), after = our_texts(file, step.after.value_or(""));
  auto text = with_texts(file, now, changes_between(before, after));
  const bool nothing_left = file == BootFile::fstab ? text.empty() : is_bare_rc_local(text);
  return step.after || !nothing_left ? std::optional(std::move(text)) : std::nullopt;
}

} // namespace

void rebase_boot_undo(const BootFacts& facts, plan::Plan& plan) {
  std::erase_if(plan.steps, [&](plan::Step& one) {
    auto* const step = std::get_if<plan::File>(&one.action);
    if (step == nullptr)
      return false;
    const bool is_fstab = step->path == sys::k_fstab;
    const auto unit =
        parent_path(step->path) == sys::k_unit_directory ? facts.units.find(base_name(step->path)) : facts.units.end();
    const auto& now = is_fstab                                             ? facts.fstab
                      : step->path == facts.rc_path                        ? facts.rc_local
                      : unit != facts.units.end() && is_ours(unit->second) ? std::optional(unit->second)
                                                                           : std::nullopt;
    if (!now || now == step->before || now == step->after)
      return false;
    if (unit == facts.units.end())
      step->after =
          new_content(*step, *now, is_fstab ? BootFile::fstab : BootFile::rc_local); // units are replaced whole
    if (step->after == now)
      return true;
    step->before = now;
    return false;
  });
}

void forget_at_boot(const BootFacts& facts, const BootHost& host, const sys::MountTable& table,
                    std::vector<MountPoint> points, MountPlan& plan) {
  std::erase_if(points, [&](const auto& point) { return std::ranges::count(plan.blocked, point.target) > 0; });
  for (auto& point : points)
    point.boot = BootWay::none;
  const auto boot = plan_boot(facts, host, points);
  plan.plan.add(boot.plan);
  for (const auto& point : points) {
    // The check of this action would trigger an automount, so the step comes after our automount unit is stopped.
    const bool automounted = std::ranges::any_of(table.entries(), [&](const sys::MountEntry& one) {
      return one.target == point.target && one.fs_type == "autofs";
    });
    if (!automounted || !boot.plan.empty())
      plan.plan.add(automounted ? boot.plan.steps.front().group : point.target, "an ordinary directory again",
                    plan::SetImmutable{point.target, false});
  }
}

} // namespace sharefs::mounts
