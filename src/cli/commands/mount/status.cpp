// sharefs status: shows the state of every NFS mount, and never hangs on one.
#include "base/text.hpp"
#include "base/try.hpp"
#include "cli/commands/conda/staged.hpp"
#include "cli/commands/mount/node_health.hpp"
#include "cli/exit_code.hpp"
#include "mounts/diagnose.hpp"
#include "mounts/verify.hpp"
#include "ui/table.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::cli {

namespace {

ui::Colour colour_of(const mounts::MountState& state) {
  if (state.health == mounts::Health::slow || state.health == mounts::Health::full ||
      state.health == mounts::Health::autofs_idle || (mounts::is_good(state.health) && !state.right()))
    return ui::Colour::yellow;
  return mounts::is_good(state.health) ? ui::Colour::green : ui::Colour::red;
}

std::vector<ui::Cell> row_of(const mounts::MountState& state) {
  const auto& point = state.point;
  std::string latency = "-", used = "-";
  if (const auto* space = state.space(); space != nullptr) {
    latency = format_duration(space->latency.count());
    used = fmt::format("{} / {}", format_bytes(space->size_bytes - space->free_bytes), format_bytes(space->size_bytes));
  }
  const auto source = state.mounted() ? state.mount->source : format_source(point.server, point.path);
  return {{point.name.empty() ? "-" : point.name},
          {source},
          {point.target},
          {mounts::to_string(state.health), colour_of(state)},
          {latency},
          {used},
          {state.differences.empty() ? "-" : mounts::describe(state.differences)}};
}

ui::Table table_of(const std::vector<mounts::MountState>& states) {
  ui::Table table({{"SHARE"},
                   {"SOURCE", false, true},
                   {"TARGET"},
                   {"STATE"},
                   {"LATENCY", true},
                   {"USED / SIZE", true},
                   {"OPTIONS THAT DIFFER", false, true}});
  for (const auto& state : states)
    table.add(row_of(state));
  return table;
}

constexpr const char* k_no_mounts = "no NFS mount here, and none in sharefs.yaml";

Result<int> run_status(Context& context, const Arguments& arguments) {
  if (arguments.flag("node-health") && arguments.flag("verify"))
    return fail(ErrorCode::usage, "`--node-health` and `--verify` exclude each other");
  if (arguments.flag("node-health"))
    return run_node_health(context, arguments);
  TRY_ASSIGN(const auto config, context.config_if_any());
  TRY_ASSIGN(const auto timeout, timeout_of(arguments));

  mounts::ProbeRequest request;
  request.wanted = mount_points(context.system, config);
  request.others = true;
  request.path_deadline = request.server_deadline = timeout;
  TRY_ASSIGN(const auto seen, observe(context, request));

  add_states(context, seen.states);
  context.console.show(table_of(seen.states));
  if (seen.states.empty())
    context.console.message(k_no_mounts);
  context.report(mounts::diagnose(seen));
  context.report(mounts::diagnose_refusals(context.system, seen, {}));
  context.report(conda::diagnose_staged(staged_images(context, config)));
  std::vector<mounts::MountPoint> good;
  for (const auto& state : seen.states)
    if (state.mounted() && state.right())
      good.push_back(state.point);
  const bool written = !arguments.flag("verify") || verify(context, good, timeout).empty();
  const bool well = written && std::all_of(seen.states.begin(), seen.states.end(),
                                           [](const mounts::MountState& state) { return state.right(); });
  return well ? k_exit_ok : k_exit_failed;
}

} // namespace

extern const CommandSpec k_status_command{
    .name = "status",
    .summary = "Show the state of every NFS mount of this host",
    .description =
        "One line per mount: of sharefs.yaml, if there is one, and of the mount table. All are asked at the same time "
        "with a deadline, so a dead server shows as `hung` and hangs nothing. What is wrong is explained below, with "
        "its cure. That a server has become read-only shows in a write only: see --verify. Exit code 0 if all is well, "
        "1 otherwise.",
    .example = "watch -n 2 sharefs status\n"
               "sharefs status --json | jq '.mounts[] | select(.state != \"healthy\")'",
    .effect = Effect::reads,
    .options = {{.names = "--verify", .help = "write, read back and delete a test file on each"},
                {.names = "--node-health",
                 .help =
                     "one line, and exit code 0 (well), 1 (not well) or 2 (not known): for Slurm, NHC and Kubernetes"},
                {.names = "--deadline",
                 .value = "TIME",
                 .help = "longest time of --node-health, whatever hangs",
                 .fallback = "4s"},
                {.names = "--timeout", .value = "TIME", .help = "how long to wait for an answer", .fallback = "2s"}},
    .on_nodes = true,
    .run = run_status,
};

} // namespace sharefs::cli
