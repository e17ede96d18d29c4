#include "conda/collect.hpp"

#include "base/path.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "conda/image.hpp"
#include "conda/noted_processes.hpp"
#include "conda/staged.hpp"
#include "sys/process/interrupt.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>
#include <thread>

namespace sharefs::conda {

namespace {

/// True if all generations come from shares that were undone: each original is in its place again.
bool was_taken_back(sys::System& system, const SharedEnvironment& environment) {
  return std::ranges::all_of(environment.generations, [&](const StoredGeneration& one) {
    if (!one.record || one.record->original.path.empty())
      return false;
    const auto entry = system.entry({.path = one.record->original.path, .links = sys::Links::none});
    const auto* original = one.original(entry.uid);
    return entry.kind == sys::EntryKind::directory && original != nullptr && entry.inode == original->inode;
  });
}

/// Waits as long as an NFS client may cache the old target of the link (nfs(5), acdirmax): on that client a generation
/// that is deleted earlier would be missing.
Result<void> wait_for_other_hosts(const SharedEnvironment& environment, const CollectRequest& request,
                                  const plan::Say& say) {
  constexpr std::chrono::seconds k_remembered{62}; // 60 by default, and up to a second for each of the two times
  constexpr std::chrono::milliseconds k_poll{100};
  if (!environment.entry.shared && !request.is_exported(environment.root.resolved))
    return {};
  const std::chrono::seconds since(std::max<std::int64_t>(environment.held - environment.entry.mtime, 0));
  if (since >= k_remembered)
    return {};
  say.message(fmt::format("waiting for {} s: other hosts may still follow {} to where it led before",
                          (k_remembered - since).count(), environment.path()));
  for (const auto end = sys::deadline_in(k_remembered - since); sys::Clock::now() < end;) {
    if (sys::interrupted())
      return fail(ErrorCode::interrupted, "interrupted: nothing was deleted");
    std::this_thread::sleep_for(k_poll); // NOLINT: no event of another host could wake this process
  }
  return {};
}

/// True if `word` names the use. User names and host names may contain an `@`, so whole words are compared.
bool is_forgotten(const Use& use, const std::string& word) {
  return word == use.host || (!use.user.empty() && (word == use.user + "@" + use.host || word == use.user + "@"));
}

/// Fails if not all uses are known, because then nothing may be deleted.
Result<void> check_uses_are_known(sys::System& system, const SharedEnvironment& environment) {
  if (environment.unknown_uses.empty())
    return {};
  auto message = fmt::format("who uses `{}` is not known: {}", environment.name, environment.unknown_uses);
  std::map<std::uint32_t, std::size_t> counts;
  for (const auto& use : environment.uses)
    ++counts[use.uid];
  const auto most = std::ranges::max_element(counts, {}, [](const auto& one) { return one.second; });
  if (most == counts.end())
    return fail(ErrorCode::failed, std::move(message), "whoever runs it needs to list that directory");
  const auto user = system.user(std::to_string(most->first));
  const auto name = user ? user->name : std::to_string(most->first);
  return fail(ErrorCode::failed, std::move(message),
              fmt::format("most of them are of `{0}`: `find {1} ! -type d -user {0} -delete`", name,
                          shell_quote(join_path(environment.root.path, "uses"))));
}

/// Keeps generations that this user cannot delete: only the owner, root or a user who can write in it can. Anybody else
/// would rename it and then fail.
Result<void> keep_undeletable(sys::System& system, const SharedEnvironment& environment, std::vector<Kept>& kept) {
  const auto self = system.identity();
  std::string owner;
  bool deletes = false;
  for (auto& [number, reason] : kept) {
    const auto& entry = environment.find(number)->entry;
    if (!reason.empty())
      continue;
    if (self.uid == 0 || entry.uid == self.uid || system.entry({.path = entry.path, .access = true}).writable) {
      deletes = true;
      continue;
    }
    owner = user_name(system, entry.uid);
    reason = fmt::format("it belongs to `{}`, who alone can delete it", owner);
  }
  return owner.empty() || deletes
             ? Result<void>{}
             : fail(ErrorCode::permission,
                    fmt::format("`{}` cannot delete generations of `{}` that belong to `{}`: nothing was changed",
                                self.user, environment.name, owner),
                    fmt::format("run it as `{}`", owner));
}

/// Returns the uses that count, and the programs that run on this host without a note.
std::vector<Use> find_counted_uses(sys::System& system, const SharedEnvironment& environment,
                                   const CollectRequest& request) {
  auto live = find_live_uses(system, environment);
  std::erase_if(live, [&](const Use& use) {
    return std::ranges::any_of(request.forgotten, [&](const std::string& one) { return is_forgotten(use, one); });
  });
  for (const auto& programs : {request.programs, running_programs(system)})
    for (const auto& [pid, in] : programs_of(system, programs, environment.name, environment.root))
      live.push_back({system.identity().process_host(), pid, 0, in.number});
  return live;
}

/// Returns the trees and images that interrupted commands have left and that this user may delete.
std::vector<sys::Entry> find_unfinished(sys::System& system, const SharedEnvironment& environment) {
  sys::EntryRequest request;
  for (const auto& name : environment.unfinished)
    request.queries.push_back({.path = join_path(environment.root.path, name)});
  auto left = system.entries(request);
  const auto self = system.identity().uid;
  std::ranges::move(left_images(system, environment), std::back_inserter(left));
  std::erase_if(left, [&](const sys::Entry& entry) { return self != 0 && entry.uid != self; });
  return left;
}

/// Returns the notes of the plan: the reason for each kept generation.
std::vector<std::string> notes_of(sys::System& system, const SharedEnvironment& environment,
                                  const std::vector<Kept>& kept, const std::vector<Use>& live) {
  std::vector<std::string> notes;
  for (const auto& name : environment.doubtful)
    notes.push_back(fmt::format("{} is left: it may be somebody's own directory, for others may write in {}",
                                join_path(environment.root.path, name), environment.root.path));
  for (const auto& [number, reason] : kept)
    if (!reason.empty())
      notes.push_back(fmt::format("generation {} is kept: {}", number, reason));
  NotedProcesses processes(system);
  std::set<std::string> elsewhere;
  for (const auto& use : live)
    if (!processes.find(use))
      elsewhere.insert(use.user + "@" + use.host);
  constexpr std::size_t k_shown = 20;
  std::size_t shown = 0;
  for (const auto& whose : elsewhere)
    if (++shown <= k_shown)
      notes.push_back(fmt::format("whether processes of {} still run is known there only; `--forget {}` if they do not",
                                  whose, shell_quote(whose)));
  if (elsewhere.size() > k_shown)
    notes.push_back(fmt::format("and {} more", elsewhere.size() - k_shown));
  const auto now = time_of(system, environment);
  const auto old = std::ranges::count_if(environment.uses, [&](const Use& use) {
    return !processes.keeps_generation(use, now) && processes.is_running(use) != false;
  });
  if (old > 0)
    notes.push_back(fmt::format("{} older than {} days {} nothing any more; `touch {}/NNNN.pinned` keeps a generation",
                                count_of(static_cast<std::size_t>(old), "note"), k_note_days,
                                old == 1 ? "keeps" : "keep", environment.root.path));
  return notes;
}

} // namespace

Result<SharedEnvironment> find_collectable(sys::System& system, const std::string& store, const std::string& name) {
  auto found = probe_environment(system, store, name);
  const bool some = found && !found->entry.exists() && (!found->generations.empty() || !found->unfinished.empty());
  return some && was_taken_back(system, *found) ? found : find_shared(system, store, name);
}

Result<Collection> collect(sys::System& system, const SharedEnvironment& environment, const CollectRequest& request,
                           const plan::Say& say) {
  TRY(check_uses_are_known(system, environment));
  const bool taken_back = !environment.entry.exists(); // see find_collectable()
  const auto live = find_counted_uses(system, environment, request);
  Collection found;
  found.kept = decide_kept(environment, live, taken_back ? 0 : request.keep);
  TRY(keep_undeletable(system, environment, found.kept));
  if (!request.only_plans && std::ranges::any_of(found.kept, &std::string::empty, &Kept::reason))
    TRY(wait_for_other_hosts(environment, request, say));
  found.plan = plan_collect(environment, found.kept, random_letters(6), find_unfinished(system, environment));
  found.plan.notes = notes_of(system, environment, found.kept, live);
  return found;
}

Result<void> check_unused(sys::System& system, const SharedEnvironment& now, const CollectRequest& request,
                          const std::vector<Kept>& kept) {
  TRY(check_uses_are_known(system, now));
  const auto live = find_counted_uses(system, now, request);
  for (const auto& [number, reason] : kept) {
    const auto needed = [number = number](const std::string& why) {
      return fail(ErrorCode::busy, why, fmt::format("run the command again: it keeps generation {}", number));
    };
    if (!reason.empty())
      continue;
    if (number == now.current) // `sharefs undo` takes no lease
      return needed(fmt::format("{} leads to generation {} since", now.path(), number));
    if (const auto pin = generation_name(number) + ".pinned"; std::ranges::binary_search(now.root.names, pin))
      return needed(fmt::format("{} was made since", join_path(now.root.path, pin)));
    if (const auto use = std::ranges::find(live, number, &Use::generation); use != live.end())
      return needed(fmt::format("{} works with generation {} since", text_of(*use), number));
  }
  return {};
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
  // This step changes nothing: it fails if STORE/ENV leads elsewhere by now, for `sharefs undo` takes no lease.
  const auto& seen = environment.entry.link_target;
  if (environment.current != 0 && std::ranges::any_of(kept, &std::string::empty, &Kept::reason))
    plan.add_bookkeeping("", "users see the same generation as when this was planned",
                         plan::Link{environment.path(), seen, seen}, true);
  for (const auto& [number, reason] : kept) {
    const auto* one = environment.find(number);
    if (!reason.empty() || one == nullptr)
      continue;
    for (const auto& [entry, what] : {std::pair(&one->image, "its image"), {&one->image_note, "what is known of that"}})
      if (entry->kind == sys::EntryKind::file)
        plan.add_bookkeeping(fmt::format("generation {}", number), what, removal_of(*entry));
    const auto old = join_path(generations_path(environment.store, environment.name),
                               fmt::format("old-{}.{}", generation_name(number), suffix));
    const auto hide = [&](const char* why, plan::Action action) {
      plan.add_bookkeeping("", why, std::move(action));
      plan.steps.back().stays_deleted = true;
    };
    if (one->record_entry.kind == sys::EntryKind::file)
      hide("nothing keeps it", plan::remove_file(one->record_entry.path, one->record_entry.content));
    hide("out of sight first: half of it must not be found", plan::Rename{one->entry.path, old, std::nullopt});
    plan.add(fmt::format("generation {}", number), fmt::format("generation {}, which nothing keeps", number),
             plan::RemoveTree{.path = old, .device = one->entry.device, .inode = one->entry.inode});
  }
  for (const auto& entry : unfinished)
    if (entry.kind == sys::EntryKind::directory || entry.kind == sys::EntryKind::file)
      plan.add(base_name(entry.path), "left by one that was cut off", removal_of(entry));
  return plan;
}

} // namespace sharefs::conda
