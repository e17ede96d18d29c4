// sharefs conda purge: the originals that `conda share` has kept in the homes.
#include "conda/purge.hpp"

#include "base/path.hpp"
#include "cli/commands/conda/names.hpp"
#include "cli/commands/conda/worker.hpp"
#include "cli/execute.hpp"
#include "cli/exit_code.hpp"
#include "cli/say.hpp"
#include "sys/process/interrupt.hpp"

namespace sharefs::cli {

namespace {

Result<int> run_purge(Context& context, const Arguments& arguments) {
  if (context.flags.root != "/")
    return fail(ErrorCode::unsupported, "the originals lie in homes of a running system: --root is not possible here");
  const auto section = conda_section(context);
  if (!section)
    return fail(section.error());
  const auto& conda = **section;
  conda::PurgeRequest request;
  request.store = conda.store;
  request.homes = homes_of(conda, context.system.identity());
  request.named = !arguments.positional.empty();
  for (const auto& word : arguments.positional) {
    auto where = store_name(context, word);
    if (!where)
      return fail(where.error());
    request.names.push_back(std::move(where->name));
  }
  const auto seen = see_store(context, join_path(conda.store, ".generations"), true);
  if (!seen)
    return fail(seen.error());
  say_read_by(context, conda.store, seen->by);
  request.as = seen->by;
  if (!request.named)
    request.names = seen->entries.front().names;
  sys::install_interrupt_handlers();
  const auto purge = conda::plan_purge(context.system, request, say_to(context));
  if (!purge)
    return fail(purge.error());
  const auto executed = execute(context, purge->plan, "no original of a shared environment is kept");
  if (!executed)
    return fail(executed.error());
  return executed->exit_code == k_exit_ok && purge->incomplete ? (executed->applied() ? k_exit_partly : k_exit_failed)
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
