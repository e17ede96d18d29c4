// sharefs conda update: a command changes a shared environment; users see the whole change or nothing of it.
#include "conda/update.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "cli/commands/conda/support.hpp"
#include "cli/execute.hpp"
#include "conda/change.hpp"
#include "sys/process/interrupt.hpp"

#include <fmt/format.h>

namespace sharefs::cli {

namespace {

/// Returns PATH for the command in a worker: the system's directories, behind the directory in which root would find
/// the command.
std::vector<std::string> path_for(Context& context, const Argv& command) {
  sys::EntryRequest request;
  for (const auto& directory : split(context.environment("PATH").value_or(""), ':'))
    if (directory.starts_with('/') && command.front().find('/') == std::string::npos)
      request.queries.push_back({.path = join_path(directory, command.front()), .follow = true});
  for (const auto& entry : context.system.entries(request))
    if (entry.kind == sys::EntryKind::file && (entry.mode & 0111U) != 0)
      return {"PATH=" + parent_path(entry.path) + ":" + sys::k_system_path};
  return {};
}

std::optional<Result<int>> update_as_owner(Context& context, const Arguments& arguments) {
  TRY_ASSIGN(const auto where, store_name(context, arguments.positional.front()));
  if (!context.flags.changes_nothing() && !context.flags.yes &&
      (!context.console.options().in_terminal || context.flags.json))
    return fail(ErrorCode::usage, "there is no terminal to ask for consent", "add --yes to go ahead");
  return work_as_owner(context, where.store, {.environment = path_for(context, *arguments.rest), .makes_view = true});
}

Result<int> show_intent(Context& context, const Argv& command, const StoreName& where) {
  TRY_ASSIGN(const auto environment, conda::find_shared(context.system, where.store, where.name));
  context.console.message(fmt::format("`{}` would run in a copy of generation {} of `{}`, seen at {}; if it succeeds, "
                                      "what it left becomes generation {}",
                                      shell_join(command), environment.current, where.name, environment.path(),
                                      environment.next()));
  return context.flags.check ? k_exit_pending : k_exit_ok;
}

void show_changes(Context& context, const conda::NewGeneration& made) {
  const auto& record = made.environment.find(made.environment.current)->record;
  const auto changes =
      conda::package_changes(record ? record->packages : std::vector<conda::Package>{}, made.record.packages);
  context.console.message(changes.empty() ? std::string("the packages are the same as before") : "packages:");
  for (const auto& change : changes)
    context.console.message("  " + text_of(change));
}

Result<int> run_update(Context& context, const Arguments& arguments) {
  TRY_ASSIGN(const auto where, store_name(context, arguments.positional.front()));
  if (context.flags.changes_nothing())
    return show_intent(context, *arguments.rest, where);
  sys::install_interrupt_handlers();
  conda::UpdateRequest request;
  request.store = where.store;
  request.name = where.name;
  request.command = {*arguments.rest, context.host.environment, context.host.working_directory, context.flags.json};
  request.user_namespace = context.host.inherited.user_namespace;
  request.scratch = normalize_path(arguments.value("scratch").value_or("/var/tmp"), context.host.working_directory);
  request.verify = !arguments.flag("no-verify");
  request.message = arguments.value("message").value_or("");
  request.settings = generation_settings(context, where.name, true);
  TRY_ASSIGN(auto updated, conda::update(context.system, request, say_to(context)));
  show_changes(context, updated);
  Proposal proposal{conda::plan_switch(updated.environment, updated.record.number, updated.hidden), ""};
  return execute_switch(context, std::move(proposal), [&] { return Result<conda::NewGeneration>(std::move(updated)); })
      .map(&Executed::exit_code);
}

} // namespace

extern const CommandSpec k_conda_update_command{
    .name = "conda update",
    .summary = "Change a shared environment by a command, all of it or nothing",
    .description =
        "Runs COMMAND (pip, conda, mamba, a script) in a view of the environment at its own path that only COMMAND "
        "sees. If it succeeds, and the result is sound, that becomes a new generation, and users see it from one "
        "moment "
        "to the next; if it fails nothing has changed. What has not changed is shared with the generation before. What "
        "runs by `sharefs conda run` keeps its generation. Two updates at once: the second waits (--wait).",
    .example = "sharefs conda update llm_train -- pip install 'torch==2.4'\n"
               "sharefs conda update llm_train --message 'for the paper' -- conda install -y numpy\n"
               "sharefs conda rollback llm_train        # back to the one before",
    .changes = true,
    .positional = {.name = "ENV", .help = "a shared environment, by its name in the store", .min = 1, .max = 1},
    .options = {{.names = "--message", .value = "TEXT", .help = "what for; `conda generations` shows it"},
                {.names = "--no-verify", .help = "do not compare the result with conda's records"},
                {.names = "--scratch",
                 .value = "DIR",
                 .help = "directory on this host's own disk for what the command writes",
                 .fallback = "/var/tmp"}},
    .takes_command = true,
    .elsewhere = update_as_owner,
    .run = run_update,
};

} // namespace sharefs::cli
