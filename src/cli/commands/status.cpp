// sharefs status: the state of every NFS mount, never hanging on one.
#include "base/text.hpp"
#include "cli/commands/mount_support.hpp"
#include "cli/exit_code.hpp"
#include "mounts/diagnose.hpp"
#include "ui/table.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::cli {

namespace {

ui::Colour colour_of(const mounts::MountState& state) {
  if (state.health == mounts::Health::slow || state.health == mounts::Health::autofs_idle ||
      (mounts::is_good(state.health) && !state.right()))
    return ui::Colour::yellow;
  return mounts::is_good(state.health) ? ui::Colour::green : ui::Colour::red;
}

std::vector<ui::Cell> row_of(const mounts::MountState& state) {
  const auto& point = state.point;
  std::string latency = "-", used = "-";
  if (state.probe && state.probe->size_bytes > 0) {
    const auto& probe = *state.probe;
    latency = format_duration(probe.latency.count());
    used = fmt::format("{} / {}", format_bytes(probe.size_bytes - probe.free_bytes), format_bytes(probe.size_bytes));
  }
  const auto source = state.mounted() ? state.mount->source : mounts::format_source(point.server, point.path);
  return {{point.name.empty() ? "-" : point.name},
          {source},
          {point.target},
          {mounts::to_string(state.health), colour_of(state)},
          {latency},
          {used},
          {state.differences.empty() ? "-" : mounts::describe(state.differences)}};
}

Result<int> run_status(Context& context, const Arguments& arguments) {
  const auto config = context.config_if_any();
  if (!config)
    return fail(config.error());
  const auto timeout = timeout_of(arguments);
  if (!timeout)
    return fail(timeout.error());

  mounts::ProbeRequest request;
  if (*config != nullptr)
    request.wanted = mount_requests(**config);
  request.others = true;
  request.path_deadline = request.server_deadline = *timeout;
  const auto seen = [&] {
    const ui::Console::Progress progress(context.console, "looking at the mounts");
    return mounts::probe(context.system, request);
  }();
  if (!seen)
    return fail(seen.error());

  ui::Table table({{"SHARE"},
                   {"SOURCE", false, true},
                   {"TARGET"},
                   {"STATE"},
                   {"LATENCY", true},
                   {"USED / SIZE", true},
                   {"OPTIONS THAT DIFFER", false, true}});
  auto json = nlohmann::ordered_json::array();
  for (const auto& state : seen->states) {
    table.add(row_of(state));
    json.push_back(to_json(state));
  }
  context.envelope.fields["mounts"] = std::move(json);
  if (!context.flags.json && !table.empty())
    context.console.out() << table.render(context.console.options()) << std::flush;
  if (seen->states.empty())
    context.console.message("no NFS mount here, and none in sharefs.yaml");
  context.report(mounts::diagnose(*seen));
  const bool well = std::all_of(seen->states.begin(), seen->states.end(),
                                [](const mounts::MountState& state) { return state.right(); });
  return well ? k_exit_ok : k_exit_failed;
}

} // namespace

extern const CommandSpec k_status_command;
const CommandSpec k_status_command{
    .name = "status",
    .summary = "Show the state of every NFS mount of this host",
    .description =
        "One line per mount: of sharefs.yaml, if there is one, and of the mount table. Every mount is asked in a "
        "process of its own with a deadline, so a dead server shows as `hung` and hangs nothing. What is wrong is "
        "explained below, with its cure. Exit code 0 if all is well, 1 otherwise.",
    .example = "sharefs status\n"
               "sharefs status --json | jq '.mounts[] | select(.state != \"healthy\")'",
    .effect = Effect::reads,
    .options = {{.names = "--timeout", .value = "TIME", .help = "how long to wait for an answer", .fallback = "2s"}},
    .run = run_status,
};

} // namespace sharefs::cli
