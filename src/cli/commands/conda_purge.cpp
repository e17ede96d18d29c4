// sharefs conda purge: the originals that `conda share` has kept in the homes.
#include "base/path.hpp"
#include "base/text.hpp"
#include "cli/commands/conda_names.hpp"
#include "cli/commands/conda_share_source.hpp"
#include "cli/commands/conda_support.hpp"
#include "cli/execute.hpp"
#include "cli/exit_code.hpp"
#include "conda/backup_name.hpp"
#include "conda/share.hpp"
#include "sys/process/interrupt.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>

namespace sharefs::cli {

namespace {

/// Everything in it is there and can be read. That pip has changed a file of conda is as it was in the original.
Result<bool> is_sound(Context& context, const conda::SharedEnvironment& shared, const std::optional<sys::User>& as) {
  const auto state = read_environment(context, {.path = shared.path(), .prefix = shared.path(), .as = as});
  if (!state)
    return fail(state.error());
  auto found = conda::diagnose(*state);
  std::erase_if(found, [](const Diagnosis& one) { return one.severity != Severity::error || one.code == "SF502"; });
  context.report(found);
  return found.empty();
}

class Purge {
 public:
  /// `by`: as whom root reads the store.
  Purge(Context& context, const std::vector<conda::HomeState>& homes, std::optional<sys::User> by)
      : m_context(context), m_homes(homes), m_by(std::move(by)) {}

  /// What `share` has noted of one environment.
  Result<void> add(const conda::SharedEnvironment& shared) {
    for (const auto& original : shared.originals)
      if (auto added = add(shared, original); !added)
        return added;
    for (const auto& home : m_homes)
      for (const auto& place : home.environments)
        if (place.environment == shared.name)
          report_others(home, shared, place);
    return {};
  }

  [[nodiscard]] bool failed() const { return m_failed; }
  plan::Plan plan;

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
    auto source = source_at(m_context, path, target);
    return source && source->path == path ? std::optional<Owner>({parent_path(path), std::move(source->actor)})
                                          : std::nullopt;
  }

  Result<void> add(const conda::SharedEnvironment& shared, const conda::StoredOriginal& original) {
    const auto self = m_context.system.identity();
    const auto& [path, kept, inode] = original.what;
    const auto owner = owner_of(path, shared.path());
    if (!owner || (self.uid != 0 && owner->actor.user.uid != self.uid))
      return {};
    sys::EntryRequest request;
    if (self.uid == 0)
      request.as = owner->actor.user;
    for (const auto& one : {path, kept})
      request.queries.push_back({.path = one, .links = sys::Links::none});
    const auto entries = m_context.system.entries(request);
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
      const auto sound = is_sound(m_context, shared, m_by);
      if (!sound)
        return fail(sound.error());
      m_sound[shared.name] = *sound;
    }
    if (!m_sound[shared.name]) {
      m_failed = true;
      m_context.report({{Severity::error, "SF528", shared.path(), "it is not sound, so the original is kept: " + kept,
                         fmt::format("`sharefs conda verify {}` shows all of it", shared.name), ""}});
      return {};
    }
    plan.add(
        owner->group, "the original of the shared environment `" + shared.name + "`",
        plan::RemoveTree{.path = kept, .device = directory.device, .inode = directory.inode, .actor = owner->actor});
    return {};
  }

  /// Of `link --backup`, or of a sharefs that noted nothing.
  void report_others(const conda::HomeState& home, const conda::SharedEnvironment& shared, const conda::Place& place) {
    std::vector<std::string> left;
    for (const auto& one : home.envs.entry.names)
      if (conda::newest_backup({one}, shared.name) == one &&
          !m_noted.contains(join_path(parent_path(place.entry.path), one)))
        left.push_back(one);
    if (!left.empty())
      report_left(place.entry.path, join(left, ", "), "it is not known to be what was shared");
  }

  void report_left(const std::string& path, const std::string& names, const std::string& why) {
    m_context.report({{Severity::info, "SF527", path, fmt::format("{} left: {}", names, why),
                       "look at it, then move or delete it by hand", ""}});
  }

  Context& m_context;
  const std::vector<conda::HomeState>& m_homes;
  std::optional<sys::User> m_by;
  std::map<std::string, bool> m_sound;
  std::set<std::string> m_noted;
  bool m_failed = false;
};

Result<int> run_purge(Context& context, const Arguments& arguments) {
  if (context.flags.root != "/")
    return fail(ErrorCode::unsupported, "the originals lie in homes of a running system: --root is not possible here");
  const auto section = conda_section(context);
  if (!section)
    return fail(section.error());
  const auto& conda = **section;
  std::vector<std::string> names;
  for (const auto& word : arguments.positional) {
    auto where = store_name(context, word);
    if (!where)
      return fail(where.error());
    names.push_back(std::move(where->name));
  }
  const auto seen = see_store(context, join_path(conda.store, ".generations"), true);
  if (!seen)
    return fail(seen.error());
  say_read_by(context, conda.store, seen->by);
  if (names.empty())
    names = seen->entries.front().names;
  sys::install_interrupt_handlers();
  conda::LinkRequest request;
  request.verb = conda::LinkRequest::Verb::unlink;
  request.store = conda.store;
  request.environments = names;
  request.homes = homes_of(conda, context.system.identity());
  const auto state = conda::probe(context.system, request);
  if (!state)
    return fail(state.error());
  Purge purge(context, state->homes, seen->by);
  bool unread = false;
  for (const auto& home : state->homes) {
    const auto problems = conda::diagnose_problem(home, request.verb);
    context.report(problems);
    unread = unread || has_errors(problems);
  }
  for (const auto& name : names) {
    const auto shared = conda::probe_environment(context.system, conda.store, name, seen->by);
    if (!shared)
      return fail(shared.error());
    if (!shared->entry.exists() && shared->generations.empty() && shared->originals.empty() &&
        !arguments.positional.empty())
      return fail(ErrorCode::not_found, fmt::format("there is no shared environment `{}`", name),
                  "`sharefs conda list` shows all of them");
    if (auto added = purge.add(*shared); !added)
      return fail(added.error());
  }
  const auto executed = execute(context, purge.plan, "no original of a shared environment is kept");
  if (!executed)
    return fail(executed.error());
  return executed->exit_code == k_exit_ok && (purge.failed() || unread)
             ? (executed->applied() ? k_exit_partly : k_exit_failed)
             : executed->exit_code;
}

} // namespace

extern const CommandSpec k_conda_purge_command{
    .name = "conda purge",
    .summary = "Delete the originals that `conda share` has kept",
    .description =
        "Deletes NAME.sharefs-backup-DATE beside the link to a shared environment, as the user whose it is, if it is "
        "the "
        "very directory that `conda share` has noted, and if every file of the shared one is there and can be read. "
        "What `conda link --backup` has moved aside is left. This cannot be undone.",
    .example = "sharefs conda purge llm_train --dry-run\n"
               "sharefs conda purge                 # of all shared environments",
    .effect = Effect::changes,
    .positional = {.name = "ENV", .help = "shared environments; all if none is named"},
    .run = run_purge,
};

} // namespace sharefs::cli
