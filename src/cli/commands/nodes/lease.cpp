// sharefs nodes lease: takes or gives back the lease on a server; `--on` runs it before and after a change of many
// machines.
#include "fleet/lease.hpp"
#include "base/path.hpp"
#include "base/try.hpp"
#include "cli/execute.hpp"

namespace sharefs::cli {

namespace {

Result<int> run_lease(Context& context, const Arguments& arguments) {
  TRY_ASSIGN(const auto state, state_directory(context));
  const auto& files = context.system.files();
  const auto path = join_path(state, "cluster.lease");
  const auto& run = arguments.positional.at(0);
  if (arguments.flag("release")) {
    TRY(fleet::give_back_lease(files, path, run));
    return k_exit_ok;
  }
  if (arguments.positional.size() < 2)
    return fail(ErrorCode::usage, "WHO is missing", "user@machine");
  TRY_ASSIGN(const auto span, arguments.duration("for"));
  const auto now = std::chrono::duration_cast<std::chrono::seconds>(context.system.now().time_since_epoch()).count();
  const auto until = now + std::chrono::duration_cast<std::chrono::seconds>(span).count();
  TRY(files.make_directories(state, 0700));
  TRY(fleet::take_lease(files, path, {run, arguments.positional.at(1), now, until}));
  return k_exit_ok;
}

} // namespace

extern const CommandSpec k_nodes_lease_command{
    .name = "nodes lease",
    .summary = "Take or give back the cluster lease on a server; `--on` does it",
    .description = "`--on NODES` with a change takes it on all servers first and gives it back at its end, so that two "
                   "administrators on two machines do not work against each other. An old lease expires.",
    .example = "sharefs nodes lease 20261125-181500-a1b2 --release   # after a machine that died in its work",
    .positional = {.name = "RUN [WHO]", .help = "the run, and its user@machine", .min = 1, .max = 2},
    .options = {{.names = "--release", .help = "give it back"},
                {.names = "--for", .value = "TIME", .help = "when it ends by itself", .fallback = "1h"}},
    .run = run_lease,
};

} // namespace sharefs::cli
