#include "conda/generation_plan.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "conda/staged.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::conda {

namespace {

plan::Link swap(const SharedEnvironment& environment, unsigned number) {
  return {environment.path(), environment.entry.link_target, generation_link(environment.name, number), std::nullopt,
          true};
}

} // namespace

plan::Plan plan_switch(const SharedEnvironment& environment, unsigned number, const std::string& unfinished) {
  plan::Plan plan;
  plan.add_bookkeeping(environment.name, "it is complete",
                       plan::Rename{join_path(generations_path(environment.store, environment.name), unfinished),
                                    environment.path(number), std::nullopt},
                       true);
  plan.add(environment.name, fmt::format("users see generation {} from here on; what runs keeps its own", number),
           swap(environment, number));
  return plan;
}

unsigned previous_generation(const SharedEnvironment& environment) {
  const auto newest_before = [&](unsigned number) {
    unsigned newest = 0;
    for (const auto& one : environment.generations)
      if (one.number < number)
        newest = one.number;
    return newest;
  };
  const auto* current = environment.find(environment.current);
  if (current == nullptr) {
    const auto before = newest_before(environment.current);
    return before != 0 ? before : environment.last();
  }
  // Generations between the parent and the present one were rejected, or users never saw them.
  const auto parent = current->record ? current->record->parent : 0;
  return parent != 0 && environment.find(parent) != nullptr ? parent
                                                            : newest_before(parent != 0 ? parent : current->number);
}

Result<plan::Plan> plan_rollback(const SharedEnvironment& environment, unsigned number) {
  const auto* found = environment.find(number);
  if (found == nullptr) {
    std::vector<std::string> known;
    for (const auto& one : environment.generations)
      known.push_back(std::to_string(one.number));
    return fail(ErrorCode::not_found, fmt::format("`{}` has no generation {}", environment.name, number),
                known.empty() ? "" : "there are: " + join(known, ", "));
  }
  plan::Plan plan;
  if (environment.current == 0)
    plan.add("", fmt::format("users see generation {} again", number),
             plan::make_link(environment.path(), generation_link(environment.name, number)));
  else if (number != environment.current)
    plan.add("", fmt::format("users see generation {} instead of {}", number, environment.current),
             swap(environment, number));
  const auto* now = environment.find(environment.current);
  if (now != nullptr && now->record && found->record)
    for (const auto& change : package_changes(now->record->packages, found->record->packages))
      plan.notes.push_back(text_of(change));
  return plan;
}

std::vector<Kept> decide_kept(const SharedEnvironment& environment, const std::vector<Use>& live, unsigned keep) {
  std::vector<Kept> kept;
  unsigned last = 0;
  for (auto one = environment.generations.rbegin(); one != environment.generations.rend(); ++one) {
    const auto used = std::ranges::find(live, one->number, &Use::generation);
    std::string reason;
    if (one->number == environment.current)
      reason = "current";
    else if (one->pinned)
      reason = one->pinned->empty() ? "pinned" : "pinned: " + *one->pinned;
    else if (used != live.end())
      reason = "used by " + text_of(*used);
    else if (one->record && last < keep)
      reason = fmt::format("one of the last {}", keep);
    else if (!one->record && one->record_entry.kind != sys::EntryKind::missing)
      reason = "its record " + one->problem; // the record may hold information that a newer sharefs can read
    if (one->record)
      ++last;
    kept.push_back({one->number, std::move(reason)});
  }
  std::ranges::reverse(kept);
  return kept;
}

plan::Plan plan_collect(const SharedEnvironment& environment, const std::vector<Kept>& kept, const std::string& suffix,
                        const std::vector<sys::Entry>& unfinished) {
  plan::Plan plan;
  for (const auto& [number, reason] : kept) {
    const auto* one = environment.find(number);
    if (!reason.empty() || one == nullptr)
      continue;
    for (const auto& [entry, what] : {std::pair(&one->image, "its image"), {&one->image_note, "what is known of that"}})
      if (entry->kind == sys::EntryKind::file)
        plan.add_bookkeeping(fmt::format("generation {}", number), what, removal_of(*entry));
    const auto old = join_path(generations_path(environment.store, environment.name),
                               fmt::format("old-{}.{}", generation_name(number), suffix));
    if (one->record_entry.kind == sys::EntryKind::file)
      plan.add_bookkeeping("", "nothing keeps it",
                           plan::remove_file(one->record_entry.path, one->record_entry.content));
    plan.add_bookkeeping("", "out of sight first: half of it must not be found",
                         plan::Rename{one->entry.path, old, std::nullopt});
    plan.add(fmt::format("generation {}", number), fmt::format("generation {}, which nothing keeps", number),
             plan::RemoveTree{.path = old, .device = one->entry.device, .inode = one->entry.inode});
  }
  for (const auto& entry : unfinished)
    if (entry.kind == sys::EntryKind::directory || entry.kind == sys::EntryKind::file)
      plan.add(base_name(entry.path), "left by one that was cut off", removal_of(entry));
  return plan;
}

} // namespace sharefs::conda
