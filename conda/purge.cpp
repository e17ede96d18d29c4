#include "conda/purge.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "conda/backup_name.hpp"
#include "conda/environment.hpp"
#include "conda/share.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>

namespace sharefs::conda {

namespace {

/// Everything in it is there and can be read. That pip has changed a file of conda is as it was in the original.
Result<bool> is_sound(sys::System& system, const SharedEnvironment& shared, const std::optional<sys::User>& as,
                      const plan::Say& say) {
  const auto state = probe(system, {.path = shared.path(), .prefix = shared.path(), .as = as},
                           say.progress("reading " + shared.path()));
  if (!state)
    return fail(state.error());
  auto found = diagnose(*state);
  std::erase_if(found, [](const Diagnosis& one) { return one.severity != Severity::error || one.code == "SF502"; });
  say.report(found);
  return found.empty();
}

class PurgePlanner {
 public:
  PurgePlanner(sys::System& system, const PurgeRequest& request, const std::vector<HomeState>& homes,
               const plan::Say& say)
      : m_system(system), m_request(request), m_homes(homes), m_say(say) {}

  /// What `share` has noted of one environment.
  Result<void> add(const SharedEnvironment& shared) {
    for (const auto& original : shared.originals)
      if (auto added = add(shared, original); !added)
        return added;
    for (const auto& home : m_homes)
      for (const auto& place : home.environments)
        if (place.environment == shared.name)
          report_others(home, shared, place);
    return {};
  }

  Purge made;

 private:
  struct Owner {
    std::string group;
    plan::Actor actor;
  };
  /// Who has the directory: the user of a home, or to whom the link belongs that `share --from` has left elsewhere.
  [[nodiscard]] std::optional<Owner> owner_of(const std::string& path, const std::string& target) {
    for (const auto& home : m_homes)
      if (home.actor && home.envs.entry.path == parent_path(path))
        return Owner{"home " + home.name, *home.actor};
    auto source = source_at(m_system, path, target);
    return source && source->path == path ? std::optional<Owner>({parent_path(path), std::move(source->actor)})
                                          : std::nullopt;
  }

  Result<void> add(const SharedEnvironment& shared, const StoredOriginal& original) {
    const auto self = m_system.identity();
    const auto& [path, kept, inode] = original.what;
    const auto owner = owner_of(path, shared.path());
    if (!owner || (self.uid != 0 && owner->actor.user.uid != self.uid))
      return {};
    sys::EntryRequest request;
    if (self.uid == 0)
      request.as = owner->actor.user;
    for (const auto& one : {path, kept})
      request.queries.push_back({.path = one, .links = sys::Links::none});
    const auto entries = m_system.entries(request);
    const auto& directory = entries[1];
    if (directory.kind != sys::EntryKind::directory)
      return {};
    m_noted.insert(kept);
    std::string why;
    if (!original.counts(owner->actor.user.uid))
      why = fmt::format("the note of it is of user {}, whose it is not", original.uid);
    else if (directory.inode != inode)
      why = "it is not the directory that was shared";
    else if (entries[0].kind != sys::EntryKind::symlink || entries[0].link_target != shared.path() ||
             shared.current == 0)
      why = "the link to the shared environment is not there";
    if (!why.empty()) {
      report_left(path, base_name(kept), why);
      return {};
    }
    if (!m_sound.contains(shared.name)) {
      const auto sound = is_sound(m_system, shared, m_request.as, m_say);
      if (!sound)
        return fail(sound.error());
      m_sound[shared.name] = *sound;
    }
    if (!m_sound[shared.name]) {
      made.incomplete = true;
      m_say.report({{Severity::error, "SF528", shared.path(), "it is not sound, so the original is kept: " + kept,
                     fmt::format("`sharefs conda verify {}` shows all of it", shared.name), ""}});
      return {};
    }
    made.plan.add(
        owner->group, "the original of the shared environment `" + shared.name + "`",
        plan::RemoveTree{.path = kept, .device = directory.device, .inode = directory.inode, .actor = owner->actor});
    return {};
  }

  /// Of `link --backup`, or of a sharefs that noted nothing.
  void report_others(const HomeState& home, const SharedEnvironment& shared, const Place& place) {
    std::vector<std::string> left;
    for (const auto& one : home.envs.entry.names)
      if (newest_backup({one}, shared.name) == one && !m_noted.contains(join_path(parent_path(place.entry.path), one)))
        left.push_back(one);
    if (!left.empty())
      report_left(place.entry.path, join(left, ", "), "it is not known to be what was shared");
  }

  void report_left(const std::string& path, const std::string& names, const std::string& why) {
    m_say.report({{Severity::info, "SF527", path, fmt::format("{} left: {}", names, why),
                   "look at it, then move or delete it by hand", ""}});
  }

  sys::System& m_system;
  const PurgeRequest& m_request;
  const std::vector<HomeState>& m_homes;
  const plan::Say& m_say;
  std::map<std::string, bool> m_sound;
  std::set<std::string> m_noted;
};

} // namespace

Result<Purge> plan_purge(sys::System& system, const PurgeRequest& request, const plan::Say& say) {
  LinkRequest links;
  links.verb = LinkRequest::Verb::unlink;
  links.store = request.store;
  links.environments = request.names;
  links.homes = request.homes;
  const auto state = probe(system, links);
  if (!state)
    return fail(state.error());
  PurgePlanner planner(system, request, state->homes, say);
  for (const auto& home : state->homes) {
    const auto problems = diagnose_problem(home, links.verb);
    say.report(problems);
    planner.made.incomplete = planner.made.incomplete || has_errors(problems);
  }
  for (const auto& name : request.names) {
    const auto shared = probe_environment(system, request.store, name, request.as);
    if (!shared)
      return fail(shared.error());
    if (request.named && !shared->entry.exists() && shared->generations.empty() && shared->originals.empty())
      return fail(ErrorCode::not_found, fmt::format("there is no shared environment `{}`", name),
                  "`sharefs conda list` shows all of them");
    if (auto added = planner.add(*shared); !added)
      return fail(added.error());
  }
  return std::move(planner.made);
}

} // namespace sharefs::conda
