// Undo of a change of a boot file that somebody has edited since.
#include "base/path.hpp"
#include "mounts/boot.hpp"
#include "mounts/boot_text.hpp"

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
std::optional<std::string> new_content(const plan::File& step, const std::string& now, bool is_fstab) {
  const auto read = is_fstab ? our_fstab_lines : our_rc_local_blocks;
  const auto with = is_fstab ? with_fstab_lines : with_rc_local_blocks;
  auto text = with(now, changes_between(read(step.before.value_or("")), read(step.after.value_or(""))));
  const bool nothing_left = is_fstab ? text.empty() : is_bare_rc_local(text);
  return step.after || !nothing_left ? std::optional(std::move(text)) : std::nullopt;
}

} // namespace

void rebase_boot_undo(const BootFacts& facts, plan::Plan& plan) {
  std::erase_if(plan.steps, [&](plan::Step& one) {
    auto* const step = std::get_if<plan::File>(&one.action);
    if (step == nullptr)
      return false;
    const bool is_fstab = step->path == "/etc/fstab";
    const auto unit =
        parent_path(step->path) == "/etc/systemd/system" ? facts.units.find(base_name(step->path)) : facts.units.end();
    const auto& now = is_fstab                                                             ? facts.fstab
                      : step->path == facts.rc_path                                        ? facts.rc_local
                      : unit != facts.units.end() && unit->second.starts_with(k_unit_mark) ? std::optional(unit->second)
                                                                                           : std::nullopt;
    if (!now || now == step->before || now == step->after)
      return false;
    if (unit == facts.units.end())
      step->after =
          new_content(*step, *now, is_fstab); // only fstab and rc.local are merged; our units are replaced whole
    if (step->after == now)
      return true;
    step->before = now;
    return false;
  });
}

} // namespace sharefs::mounts
