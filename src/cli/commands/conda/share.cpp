// sharefs conda share: moves a user's environment into the store.
#include "conda/share.hpp"
#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "cli/commands/conda/support.hpp"
#include "cli/execute.hpp"
#include "sys/process/interrupt.hpp"

#include <fmt/format.h>

namespace sharefs::cli {

namespace {

/// Chooses who can do the work: root, if root may read and write (nullopt), or else a worker of the owner; then its
/// exit code is returned.
std::optional<Result<int>> choose_worker(Context& context, const conda::StorePlace& store, const conda::Source& source,
                                         const Arguments& arguments) {
  const auto self = context.system.identity();
  std::vector<std::optional<sys::User>> choices;
  std::vector<std::string> problems;
  const bool is_roots = store.entry.uid == 0 && (!store.is_new || source.actor.user.uid == 0);
  if (self.uid != 0 || is_roots)
    choices.emplace_back(std::nullopt);
  else if (store.is_new)
    problems.push_back(fmt::format("the store {} is made, and is to belong to a user", store.path));
  else
    problems.push_back(fmt::format("{} belongs to another user than root, who does not work in it", store.path));
  if (self.uid == 0 && source.actor.user.uid != 0)
    choices.emplace_back(source.actor.user);
  for (const auto& choice : choices) {
    TRY_ASSIGN(auto problem, conda::probe_worker(context.system, source, store.entry.path, choice));
    if (!problem.empty()) {
      problems.push_back(std::move(problem));
      continue;
    }
    if (!choice)
      return std::nullopt;
    WorkerTask task{.user = *choice, .why = join(problems, "; ")};
    if (!arguments.value("from"))
      task.more_words = {"--from", source.path};
    return work_as(context, std::move(task));
  }
  context.report(
      {{Severity::error, "SF526", store.path, "nobody can do it: " + join(problems, "; "),
        fmt::format("let the owner of {} write in the store (a group, `chmod g+ws`), or run it where root may "
                    "do both, for example on the server",
                    source.path),
        ""}});
  return fail(ErrorCode::permission, fmt::format("`{}` cannot be shared from here", arguments.positional.front()));
}

Result<conda::StorePlace> find_store(Context& context, const std::string& store) {
  TRY_ASSIGN(const auto seen, see_store(context, store, false));
  sys::EntryRequest request{.queries = {{.path = store, .follow = true}, {.path = parent_path(store), .follow = true}}};
  request.as = seen.by;
  const auto found = context.system.entries(request);
  const bool is_new = found[0].kind == sys::EntryKind::missing && found[1].kind == sys::EntryKind::directory;
  TRY(check_share(context, store)); // never make a store on a bare mount point
  const auto& entry = found[is_new ? 1 : 0];
  if (entry.kind == sys::EntryKind::unknown)
    return fail(entry.error());
  if (entry.kind != sys::EntryKind::directory)
    return fail(ErrorCode::not_found, fmt::format("there is no directory {}, the store", store),
                "correct `conda.store` in sharefs.yaml, or make the directory that it lies in");
  return conda::StorePlace{store, entry, is_new, seen.by};
}

Result<conda::Source> find_source(Context& context, const Arguments& arguments, const StoreName& where) {
  const auto target = join_path(where.store, where.name);
  const auto from = arguments.value("from");
  const auto& config = *(*context.config())->conda;
  auto source =
      from ? conda::source_at(context.system, normalize_path(*from, context.host.working_directory))
           : conda::find_source(context.system, where.store, where.name, homes_of(config, context.system.identity()));
  if (source && source->entry.kind == sys::EntryKind::symlink && source->entry.link_target != target)
    return fail(ErrorCode::unsupported, fmt::format("{} is a link to {}", source->path, source->entry.link_target),
                "name the directory itself by --from");
  return source;
}

Result<int> execute_sharing(Context& context, conda::Sharing& sharing) {
  const auto& store = sharing.store;
  Proposal proposal;
  proposal.plan = conda::plan_share(sharing);
  if (store.is_new)
    proposal.plan.notes.insert(proposal.plan.notes.begin(),
                               fmt::format("the store {} is made, as open as {} (mode {}), and belongs to `{}`",
                                           store.path, store.entry.path, format_mode(store.entry.mode & 01777U),
                                           context.system.identity().user));
  if (sharing.step == conda::ShareStep::copy && !sharing.settings.guard.empty())
    proposal.plan.notes.emplace_back(
        "its Python programs get the guard (`caches.guard: always`); `--no-guard` leaves it out");
  proposal.takes_long = true;
  const auto make = [&] {
    auto made = conda::make_shared_copy(context.system, sharing, say_to(context));
    if (made && sharing.step == conda::ShareStep::copy)
      context.envelope.fields["copy"] = {{"files", sharing.copied.files}, {"kept", sharing.copied.kept}};
    return made;
  };
  return execute_switch(context, std::move(proposal), make).map(&Executed::exit_code);
}

Result<int> run_share(Context& context, const Arguments& arguments) {
  if (context.flags.root != "/")
    return fail(ErrorCode::unsupported, "environments are shared on a running system: --root is not possible here");
  TRY_ASSIGN(const auto where, store_name(context, arguments.positional.front()));
  TRY_ASSIGN(const auto limit, limit_of(arguments));
  TRY(conda::check_prefix(join_path(where.store, where.name)));
  TRY_ASSIGN(const auto store, find_store(context, where.store));
  sys::install_interrupt_handlers();
  TRY_ASSIGN(const auto source, find_source(context, arguments, where));
  if (source.entry.kind != sys::EntryKind::symlink)
    if (const auto done = choose_worker(context, store, source, arguments))
      return *done;
  if (store.by) // it is shared already, and root may not be able to read what is left to do
    return work_as(context, {.user = source.actor.user,
                             .why = fmt::format("root of this host may not read {} (root_squash)", where.store),
                             .more_words = arguments.value("from") ? Argv{} : Argv{"--from", source.path}});
  TRY_ASSIGN(auto sharing, conda::prepare_sharing(context.system, store, where.name, source,
                                                  context.environment("CONDA_PREFIX").value_or(""), say_to(context)));
  if (sharing.step == conda::ShareStep::nothing) {
    context.console.message(fmt::format("{} is a link to the shared environment already", source.path));
    return k_exit_ok;
  }
  context.report(sharing.found);
  if (has_errors(sharing.found)) {
    context.console.message("nothing was changed");
    return k_exit_failed;
  }
  sharing.bytes_per_second = limit;
  sharing.no_guard = arguments.flag("no-guard");
  sharing.settings = generation_settings(context, where.name, !sharing.no_guard);
  return execute_sharing(context, sharing);
}

} // namespace

extern const CommandSpec k_conda_share_command{
    .name = "conda share",
    .summary = "Move an environment of a user into the store, for all",
    .description =
        "Copies the environment into the store as generation 1, compares the copy, gives it the prefix STORE/ENV, and "
        "replaces the user's directory by a link to it in one moment; the original stays beside it until you delete "
        "it. What would not work for others is found before: editable installs, links into a package cache, "
        "a base or active environment, a full store. What was cut off goes on when run again; `sharefs undo` brings "
        "the directory back.",
    .example = "sharefs conda share llm_train\n"
               "sharefs conda share llm_train --from /home/alice/miniconda3/envs/llm --dry-run",
    .changes = true,
    .positional = {.name = "ENV", .help = "name in the store, and of the environment in a home", .min = 1, .max = 1},
    .options = {{.names = "--from",
                 .value = "PATH",
                 .help = "directory of the environment, if it is not in a home of `conda.homes`"},
                {.names = "--no-guard", .help = "without the guard, now and later (see `caches.guard: always`)"},
                k_limit_option},
    .run = run_share,
};

} // namespace sharefs::cli
