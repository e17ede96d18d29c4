// sharefs conda purge: the originals that `conda share` has kept in the homes.
#include "base/path.hpp"
#include "base/text.hpp"
#include "cli/commands/conda_names.hpp"
#include "cli/commands/conda_support.hpp"
#include "cli/execute.hpp"
#include "cli/exit_code.hpp"
#include "conda/backup_name.hpp"
#include "conda/share.hpp"
#include "sys/process/interrupt.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::cli {

namespace {

/// Everything in it is there and can be read. That pip has changed a file of conda is as it was in the original.
Result<bool> is_sound(Context& context, const conda::SharedEnvironment& shared) {
  const auto state = read_environment(context, {.path = shared.path(), .prefix = shared.path()});
  if (!state)
    return fail(state.error());
  auto found = conda::diagnose(*state);
  std::erase_if(found, [](const Diagnosis& one) { return one.severity != Severity::error || one.code == "SF502"; });
  context.report(found);
  return found.empty();
}

class Purge {
 public:
  Purge(Context& context, const std::string& store) : m_context(context), m_store(store) {}

  Result<void> add(const conda::HomeState& home, const conda::Place& place) {
    const auto& name = place.environment;
    std::vector<std::string> kept;
    for (const auto& one : home.envs.entry.names)
      if (conda::newest_backup({one}, name) == one)
        kept.push_back(one);
    if (kept.empty())
      return {};
    auto shared = conda::probe_environment(m_context.system, m_store, name);
    if (!shared)
      return fail(shared.error());
    const auto* first = shared->find(1);
    const bool was_shared =
        first != nullptr && first->record && first->record->command == conda::share_command(name, place.entry.path);
    const bool linked = place.entry.kind == sys::EntryKind::symlink && place.entry.link_target == shared->path();
    if (!was_shared || !linked || shared->current == 0) {
      m_context.report({{Severity::info, "SF527", place.entry.path,
                         fmt::format("{} left: {}", join(kept, ", "),
                                     !linked ? "the link to the shared environment is not there"
                                             : "it is not known to be what was shared"),
                         "look at it, then move or delete it by hand", ""}});
      return {};
    }
    if (!m_sound.contains(name)) {
      const auto sound = is_sound(m_context, *shared);
      if (!sound)
        return fail(sound.error());
      m_sound[name] = *sound;
    }
    if (!m_sound[name]) {
      m_failed = true;
      m_context.report(
          {{Severity::error, "SF528", shared->path(), "it is not sound, so the originals are kept: " + join(kept, ", "),
            fmt::format("`sharefs conda verify {}` shows all of it", name), ""}});
      return {};
    }
    sys::EntryRequest request;
    if (m_context.system.identity().uid == 0)
      request.as = home.actor->user;
    for (const auto& one : kept)
      request.queries.push_back({.path = join_path(home.envs.entry.path, one), .links = sys::Links::none});
    for (const auto& entry : m_context.system.entries(request))
      if (entry.kind == sys::EntryKind::directory)
        plan.add(
            "home " + home.name, "the original of the shared environment `" + name + "`",
            plan::RemoveTree{.path = entry.path, .device = entry.device, .inode = entry.inode, .actor = home.actor});
    return {};
  }

  [[nodiscard]] bool failed() const { return m_failed; }
  plan::Plan plan;

 private:
  Context& m_context;
  const std::string& m_store;
  std::map<std::string, bool> m_sound;
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
  if (names.empty())
    names = context.system.entry({.path = join_path(conda.store, ".generations"), .follow = true, .list = true}).names;
  sys::install_interrupt_handlers();
  conda::LinkRequest request;
  request.verb = conda::LinkRequest::Verb::unlink;
  request.store = conda.store;
  request.environments = names;
  request.homes = homes_of(conda, context.system.identity());
  const auto state = conda::probe(context.system, request);
  if (!state)
    return fail(state.error());
  Purge purge(context, conda.store);
  bool unread = false;
  for (const auto& home : state->homes) {
    const auto problems = conda::diagnose_problem(home, request.verb);
    context.report(problems);
    unread = unread || has_errors(problems);
    for (const auto& place : home.environments)
      if (auto added = purge.add(home, place); !added)
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
        "Deletes NAME.sharefs-backup-DATE beside the link to a shared environment, as the user whose home it is, if it "
        "is what was shared, and if every file of the shared one is there and can be read. What `conda link --backup` "
        "has moved aside is left. This cannot be undone.",
    .example = "sharefs conda purge llm_train --dry-run\n"
               "sharefs conda purge                 # of all shared environments",
    .effect = Effect::changes,
    .positional = {.name = "ENV", .help = "shared environments; all if none is named"},
    .run = run_purge,
};

} // namespace sharefs::cli
