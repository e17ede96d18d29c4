// sharefs conda stage ENV: the present generation on this host's own disk.
#include "cli/commands/conda/names.hpp"
#include "cli/commands/conda/worker.hpp"
#include "cli/execute.hpp"
#include "cli/say.hpp"
#include "conda/staging.hpp"

#include <fmt/format.h>

namespace sharefs::cli {

namespace {

Result<plan::HostLock> lock_host(Context& context) {
  const auto state = state_directory(context);
  if (!state)
    return fail(state.error());
  return plan::HostLock::acquire(
      context.system.files(), *state, {shell_join(context.argv), context.system.identity().user}, context.flags.wait,
      [&](const std::string& holder) { context.console.message("waiting: " + holder); }, "stage");
}

Result<int> stage_environment(Context& context, const Arguments& arguments) {
  const auto asked = copy_request(context, arguments);
  if (!asked)
    return fail(asked.error());
  conda::StagingRequest request;
  request.store = asked->where.store;
  request.name = asked->where.name;
  request.stage = asked->settings.stage;
  request.bytes_per_second = asked->bytes_per_second;
  request.removes = arguments.flag("remove");
  request.lock = [&context] { return lock_host(context); };
  if (!request.removes)
    if (auto mounted = check_share(context, request.store); !mounted)
      return fail(mounted.error());
  const auto say = say_to(context);
  conda::Staging staging;
  const auto propose = [&]() -> Result<Proposal> {
    auto planned = conda::plan_staging(context.system, request, say);
    if (!planned)
      return fail(planned.error());
    staging = std::move(*planned);
    Proposal proposal{staging.made.plan, staging.nothing};
    proposal.takes_long = staging.made.copies;
    proposal.before_groups = [&] { return conda::copy_staged(context.system, request, staging, say); };
    return proposal;
  };
  return execute(context, propose).map(&Executed::exit_code);
}

} // namespace

extern const CommandSpec k_conda_stage_command{
    .name = "conda stage",
    .summary = "Copy an environment's present generation to this host's own disk",
    .description =
        "Python then starts as fast as from a local disk: `sharefs conda run` takes the copy below `conda.stage` when "
        "it is whole, of the present generation, and made by root or by the user who runs the command; otherwise the "
        "generation on the share. A later generation costs what has changed since the staged one. Older copies go when "
        "no command works with them. A copy that was cut off goes on when it "
        "is run again.",
    .example = "sharefs conda stage llm_train\n"
               "sharefs conda stage llm_train --remove",
    .effect = Effect::changes,
    .positional = {.name = "ENV", .help = "a name in the store (`conda.store`)", .min = 1, .max = 1},
    .options = {k_limit_option, {.names = "--remove", .help = "remove the copies of this environment"}},
    .on_nodes = true,
    .elsewhere = [](Context& context, const Arguments& arguments) -> Result<std::optional<int>> {
      auto done = read_as_whoever_may(context, arguments);
      return !done && arguments.flag("remove") ? std::nullopt : done; // its copies lie on this host
    },
    .run = stage_environment,
};

} // namespace sharefs::cli
