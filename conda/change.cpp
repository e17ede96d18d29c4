#include "conda/change.hpp"

#include "base/path.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "conda/image.hpp"
#include "conda/noted_processes.hpp"
#include "conda/share.hpp"
#include "plan/apply.hpp"
#include "sys/find_processes.hpp"
#include "sys/process/interrupt.hpp"
#include "tree/tree.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <tuple>

namespace sharefs::conda {

namespace {

/// Deletes notes in uses/ whose processes have ended, and those that count no more, each in the name of its user;
/// without root only our own. Only this host knows that its processes have ended; other hosts would count them as jobs.
void clear_uses(sys::System& system, const SharedEnvironment& environment, std::vector<Use> ended) {
  constexpr std::size_t k_at_once = 200;
  const auto self = system.identity();
  std::erase_if(ended, [&](const Use& use) { return self.uid != 0 && use.uid != self.uid; });
  ended.resize(std::min(ended.size(), k_at_once));
  const auto uses = join_path(environment.root.path, "uses");
  for (const auto& use : ended) {
    auto note = plan::remove_link(join_path(uses, use_name(use)), sys::k_note_text);
    if (use.uid != self.uid) {
      auto user = system.user(std::to_string(use.uid));
      if (!user)
        continue;
      note.actor = plan::Actor{std::move(*user), uses};
    }
    std::ignore = plan::apply_action(note, system); // after a failure the next command tries again
  }
}

constexpr std::string_view k_scratch = "sharefs-update-";

void remove_entry(sys::System& system, const sys::Entry& entry, const plan::Say& say) {
  const tree::Place place{
      .path = entry.path, .root = system.files().root(), .device = entry.device, .inode = entry.inode};
  if (auto gone = tree::remove(place, {}); !gone)
    say.warning("left behind: " + gone.error().message, "remove " + place.path);
}

} // namespace

Result<SharedEnvironment> find_shared(sys::System& system, const std::string& store, const std::string& name,
                                      const std::optional<sys::User>& as) {
  TRY_ASSIGN(auto found, probe_environment(system, store, name, as));
  if (found.current != 0 && found.find(found.current) != nullptr)
    return found;
  if (found.current != 0)
    return fail(ErrorCode::not_found,
                fmt::format("{} leads to generation {}, which is gone", found.path(), found.current),
                found.generations.empty() ? "restore it from a backup"
                                          : fmt::format("`sharefs conda rollback {} --to {}`", name, found.last()));
  if (found.lost_its_name())
    return fail(ErrorCode::not_found,
                fmt::format("{} is gone, as `conda env remove` leaves it; generation {} of it is there", found.path(),
                            found.last()),
                fmt::format("`sharefs conda rollback {}` brings it back", name));
  if (found.entry.kind == sys::EntryKind::directory)
    return fail(ErrorCode::unsupported, found.path() + " is a plain directory, without generations",
                hint_to_share(found));
  const auto there = system.entries({.queries = {{.path = store, .follow = true, .list = true}}, .as = as});
  return fail(ErrorCode::not_found, fmt::format("there is no shared environment `{}` in {}", name, store),
              did_you_mean_hint(name, there.front().names,
                                fmt::format("`sharefs conda share {}` moves one of a user there", shell_quote(name))));
}

Result<SharedEnvironment> find_with_generations(sys::System& system, const std::string& store,
                                                const std::string& name) {
  auto found = probe_environment(system, store, name);
  const bool some = found && !found->generations.empty() && (found->current != 0 || found->lost_its_name());
  return some ? found : find_shared(system, store, name);
}

Result<sys::Lease> take_lease(sys::System& system, const SharedEnvironment& environment, sys::LeaseRequest request,
                              const plan::Say& say) {
  request.path = join_path(environment.root.path, "lock");
  bool said = false;
  auto lease = sys::Lease::take(system, request, [&](const sys::LeaseHolder& holder) {
    if (!said)
      say.message("waiting: " + holder.text() + " is at work on `" + environment.name + "`");
    said = true;
  });
  if (!lease && lease.error().code == ErrorCode::permission) {
    const auto name = user_name(system, environment.root.uid);
    return fail(ErrorCode::permission,
                fmt::format("`{}` may not change `{}`: {} belongs to `{}`", system.identity().user, environment.name,
                            environment.root.path, name),
                fmt::format("run it as `{}` or root", name));
  }
  return lease;
}

std::vector<Use> find_live_uses(sys::System& system, const SharedEnvironment& environment) {
  std::vector<Use> live, ended;
  NotedProcesses processes(system);
  const auto now = time_of(system, environment);
  const auto oldest = environment.held - k_note_days * std::int64_t{86'400}; // no note if the lease was never held
  for (const auto& use : environment.uses)
    if (processes.keeps_generation(use, now))
      live.push_back(use);
    else if (const auto running = processes.is_running(use); running == false || (!running && use.noted < oldest))
      ended.push_back(use);
  clear_uses(system, environment, std::move(ended));
  std::map<std::uint32_t, std::string> names;
  for (auto& use : live) {
    const auto [known, is_new] = names.try_emplace(use.uid);
    if (is_new)
      known->second = user_name(system, use.uid);
    use.user = known->second;
  }
  return live;
}

ScratchTree::~ScratchTree() {
  const sys::DelayInterrupts until_done;
  if (const auto entry = m_system.entry({.path = m_path, .links = sys::Links::none}); entry.exists())
    remove_entry(m_system, entry, m_say);
}

std::string scratch_name(sys::System& system, unsigned generation) {
  const auto self = system.identity();
  const Use use{self.process_host(), self.pid, sys::process_start(system.files(), self.pid).value_or(0), generation};
  return fmt::format("{}{}.{}", k_scratch, random_letters(12), use_name(use));
}

void remove_old_scratch(sys::System& system, const std::string& directory, const plan::Say& say) {
  NotedProcesses processes(system);
  for (const auto& name : system.entry({.path = directory, .follow = true, .list = true}).names) {
    const auto use = name.starts_with(k_scratch) ? parse_use(name.substr(std::min(name.find('.'), name.size() - 1) + 1))
                                                 : std::nullopt;
    if (!use || processes.is_running(*use) != false)
      continue;
    const auto entry = system.entry({.path = join_path(directory, name), .links = sys::Links::none});
    if (entry.kind == sys::EntryKind::directory && entry.uid == system.identity().uid)
      remove_entry(system, entry, say);
  }
}

namespace {

/// Removes files that a process left when it was killed while it took the lease. A process that takes it now has made
/// its file just now.
void remove_old_lease_files(sys::System& system, const SharedEnvironment& environment) {
  constexpr std::int64_t k_abandoned = 3600; // seconds
  sys::EntryRequest request;
  for (const auto& name : environment.root.names)
    if (name.starts_with("lock."))
      request.queries.push_back({.path = join_path(environment.root.path, name), .links = sys::Links::none});
  for (const auto& entry : system.entries(request))
    if (entry.kind == sys::EntryKind::file && entry.mtime < environment.held - k_abandoned)
      std::ignore = system.files().remove(entry.path); // the next command tries again
}

} // namespace

void remove_unfinished(sys::System& system, const SharedEnvironment& environment, const plan::Say& say) {
  for (const auto& name : environment.unfinished)
    if (name.starts_with("new-"))
      if (const auto entry = system.entry({.path = join_path(environment.root.path, name)});
          entry.kind == sys::EntryKind::directory) {
        say.message("removing " + entry.path + ", left by one that was cut off");
        remove_entry(system, entry, say);
      }
  for (const auto& entry : left_images(system, environment))
    remove_entry(system, entry, say);
  remove_old_lease_files(system, environment);
  for (const auto& name : environment.root.names) { // a record is written before its generation gets its name
    const auto number = name.ends_with(".json") ? used_number(name) : std::nullopt;
    if (!number || name != generation_name(*number) + ".json" || environment.find(*number) != nullptr)
      continue;
    const auto path = join_path(environment.root.path, name);
    if (auto gone = system.files().remove(path); !gone)
      say.warning("left behind: " + gone.error().message, "remove " + path);
  }
}

plan::Link link_to(const SharedEnvironment& environment, unsigned number) {
  const auto before = environment.current != 0 ? std::optional(environment.entry.link_target) : std::nullopt;
  return {environment.path(), before, generation_link(environment.name, number), std::nullopt, true};
}

plan::Plan plan_switch(const SharedEnvironment& environment, unsigned number, const std::string& unfinished) {
  plan::Plan plan;
  plan.add_bookkeeping(environment.name, "it is complete",
                       plan::Rename{join_path(generations_path(environment.store, environment.name), unfinished),
                                    environment.path(number), std::nullopt},
                       true);
  plan.add(environment.name, fmt::format("users see generation {} from here on; what runs keeps its own", number),
           link_to(environment, number));
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
  if (number != environment.current)
    plan.add("",
             environment.current == 0
                 ? fmt::format("users see generation {} again", number)
                 : fmt::format("users see generation {} instead of {}", number, environment.current),
             link_to(environment, number));
  const auto* now = environment.find(environment.current);
  if (now != nullptr && now->record && found->record)
    for (const auto& change : package_changes(now->record->packages, found->record->packages))
      plan.notes.push_back(text_of(change));
  return plan;
}

} // namespace sharefs::conda
