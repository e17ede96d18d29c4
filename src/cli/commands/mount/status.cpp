// sharefs status: shows the state of every NFS mount, and never hangs on one.
#include "base/text.hpp"
#include "base/try.hpp"
#include "base/visible.hpp"
#include "cli/commands/conda/staged.hpp"
#include "cli/commands/mount/support.hpp"
#include "cli/commands/up/part.hpp"
#include "mounts/diagnose.hpp"
#include "mounts/verify.hpp"
#include "sys/process/exit_deadline.hpp"
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

ui::Table table_of(const std::vector<mounts::MountState>& states) {
  ui::Table table({{"SHARE"},
                   {"SOURCE", false, true},
                   {"TARGET"},
                   {"STATE"},
                   {"LATENCY", true},
                   {"USED / SIZE", true},
                   {"OPTIONS THAT DIFFER", false, true}});
  for (const auto& state : states) {
    const auto& point = state.point;
    const auto* space = state.space();
    table.add({{point.name.empty() ? "-" : point.name},
               {state.mounted() ? state.mount->source : format_source(point.server, point.path)},
               {point.target},
               {mounts::to_string(state.health), colour_of(state)},
               {space == nullptr ? "-" : format_duration(space->latency.count())},
               {space == nullptr ? "-"
                                 : fmt::format("{} / {}", format_bytes(space->size_bytes - space->free_bytes),
                                               format_bytes(space->size_bytes))},
               {state.differences.empty() ? "-" : mounts::describe(state.differences)}});
  }
  return table;
}

// The limits of node-problem-detector: it keeps 80 bytes of the output, and takes exit code 0 for healthy, 1 for a
// problem, and all others for unknown (pkg/custompluginmonitor/plugin). For the others every code but 0 is a problem.
constexpr std::size_t k_health_bytes = 80;
constexpr int k_exit_unknown = 2;
/// Time for everything but the mounts themselves.
constexpr std::chrono::milliseconds k_margin{1000};

/// True if jobs can use the mount. A full file system, or one that cannot be written, makes jobs fail like a missing
/// one; different options do not.
bool is_healthy(const mounts::MountState& state) {
  return mounts::is_good(state.health) && state.health != mounts::Health::full;
}

/// Cuts a text off at so many bytes; fit_width() counts columns, and a character of one column may have four bytes.
std::string fit_bytes(std::string_view text, std::size_t bytes) {
  auto width = bytes;
  auto out = fit_width(text, width);
  while (out.size() > bytes)
    out = fit_width(text, --width);
  return out;
}

std::string health_line(const std::vector<mounts::MountState>& states) {
  const auto first = std::ranges::find_if_not(states, is_healthy);
  if (first == states.end())
    return fmt::format("sharefs: {} well", count_of(states.size(), "mount"));
  const auto others = std::count_if(first + 1, states.end(), [](const auto& state) { return !is_healthy(state); });
  const auto more = others == 0 ? "" : fmt::format(" and {} more", others);
  const auto rest = fmt::format(": {}{}", mounts::to_string(first->health), more);
  // The reason must be in the line, however long the name is.
  return "sharefs: " + fit_bytes(visible(name_of(first->point)), k_health_bytes / 3) + rest;
}

/// Runs the check that a scheduler makes before it gives work to a node. Prints one line of at most k_health_bytes on
/// stdout. Exit code 0 (well), 1 (not well) or 2 (not known), within --deadline.
Result<int> run_node_health(Context& context, const Arguments& arguments) {
  TRY_ASSIGN(const auto deadline, arguments.time_limit("deadline", "4s"));
  const sys::ExitDeadline exits(deadline, "sharefs: no answer in time\n", k_exit_unknown);
  const auto say = [&](const std::string& line) {
    context.envelope.fields["health"] = line;
    context.console.print(line + "\n");
  };
  const auto config = context.config_if_any();
  mounts::ProbeRequest request;
  request.wanted = mount_points(context.system, config ? *config : nullptr);
  request.others = config && *config == nullptr; // without a configuration every NFS mount counts
  request.servers = false;
  request.path_deadline = std::max(deadline / 2, deadline - k_margin);
  auto seen = config ? mounts::probe(context.system, request) : fail(config.error());
  if (!seen) {
    say(std::string("sharefs: ") + fit_bytes(visible(seen.error().message), k_health_bytes - 9));
    return k_exit_unknown;
  }
  leave_out_elsewhere(context.system, *config, seen->states, k_margin / 2);
  add_states(context, seen->states);
  say(health_line(seen->states));
  return std::ranges::all_of(seen->states, is_healthy) ? k_exit_ok : k_exit_failed;
}

Result<int> run_status(Context& context, const Arguments& arguments) {
  if (arguments.flag("node-health") && arguments.flag("verify"))
    return fail(ErrorCode::usage, "`--node-health` and `--verify` exclude each other");
  if (arguments.flag("node-health"))
    return run_node_health(context, arguments);
  TRY_ASSIGN(const auto config, context.config_if_any());
  TRY_ASSIGN(const auto timeout, arguments.time_limit("timeout"));

  mounts::ProbeRequest request;
  request.wanted = mount_points(context.system, config);
  request.others = true;
  request.path_deadline = request.server_deadline = timeout;
  TRY_ASSIGN(auto seen, observe(context, request));
  leave_out_elsewhere(context.system, config, seen.states);

  add_states(context, seen.states);
  context.console.show(table_of(seen.states));
  if (seen.states.empty())
    context.console.message("no NFS mount here, and none in sharefs.yaml");
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
