// Taking back a change at boot where somebody has edited the file since.
#include "base/path.hpp"
#include "mounts/boot.hpp"
#include "mounts/boot_text.hpp"

#include <algorithm>

namespace sharefs::mounts {

namespace {

/// The changes that turn the texts `from` into the texts `to`.
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

/// The content that the file gets in place of `now`; nullopt: it is removed, since the step made it and nothing else is
/// left in it.
std::optional<std::string> wanted(const plan::File& step, const std::string& now, bool is_fstab) {
  const auto read = is_fstab ? our_fstab_lines : our_rc_local_blocks;
  const auto with = is_fstab ? with_fstab_lines : with_rc_local_blocks;
  auto text = with(now, changes_between(read(step.before.value_or("")), read(step.after.value_or(""))));
  const bool nothing_left = is_fstab ? text.empty() : is_bare_rc_local(text);
  return step.after || !nothing_left ? std::optional(std::move(text)) : std::nullopt;
}

} // namespace

void undo_on_what_is_there(const BootFacts& facts, plan::Plan& plan) {
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
      step->after = wanted(*step, *now, is_fstab); // a unit of ours is replaced as a whole
    if (step->after == now)
      return true;
    step->before = now;
    return false;
  });
}

} // namespace sharefs::mounts
