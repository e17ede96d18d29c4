// sharefs nodes list: lists the machines of sharefs.yaml for people and for launchers.
#include "base/json_fields.hpp"
#include "base/number.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "cli/on_nodes.hpp"
#include "ui/table.hpp"

namespace sharefs::cli {

namespace {

Result<int> run_nodes_list(Context& context, const Arguments& arguments) {
  const auto pattern = arguments.positional.empty() ? "" : arguments.positional.front();
  TRY_ASSIGN(auto nodes, pattern.empty() ? known_nodes(context) : chosen_nodes(context, pattern));
  if (const auto slots = arguments.value("slots")) {
    const auto number = parse_number<unsigned>(*slots).value_or(0);
    if (number == 0)
      return not_understood("slots", *slots, "a number: 8");
    for (auto& node : nodes)
      if (!node.slots)
        node.slots = number;
  }
  auto& list = context.envelope.fields["nodes"] = Json::array();
  for (const auto& node : nodes) {
    auto& row = list.emplace_back(json_of(node));
    row.erase("words");
    row["origin"] = to_utf8(node.origin.text());
  }
  if (const auto name = arguments.value("format")) {
    TRY_ASSIGN(const auto text, fleet::format_nodes(nodes, *name));
    context.console.print(text);
    return k_exit_ok;
  }
  ui::Table table({{"NODE"}, {"ADDRESS"}, {"SLOTS", true}, {"GROUPS"}, {"FROM", false, true}});
  for (const auto& node : nodes)
    table.add({{node.name},
               {node.address == node.name ? "" : node.address},
               {node.slots ? std::to_string(*node.slots) : ""},
               {join(node.groups, ", ")},
               {node.origin.text()}});
  context.console.show(table);
  if (nodes.empty())
    context.console.message("sharefs.yaml names no machine; write them under `nodes:`");
  return k_exit_ok;
}

Result<int> run_nodes_resume(Context& context, const Arguments& arguments) {
  if (arguments.flag("list"))
    return list_runs(context);
  return resume_run(context, arguments.positional.empty() ? "" : arguments.positional.front());
}

} // namespace

extern const CommandSpec k_nodes_list_command{
    .name = "nodes list",
    .summary = "Show the machines of sharefs.yaml",
    .description = "All machines of `nodes:` and `servers:` in their order, wherever their names stand: in the file "
                   "itself, in a hostfile, in Slurm or in ClusterShell. With --format as another tool reads them, so "
                   "that one file serves all launchers.",
    .example = "sharefs nodes list\n"
               "sharefs nodes list --format hostfile --slots 8 clients > hostfile   # for deepspeed\n"
               "pdsh -w \"$(sharefs nodes list --format slurm)\" uptime",
    .positional = {.name = "NODES", .help = "names, ranges and groups (@a100, clients); without them all", .max = 1},
    .options = {{.names = "--format",
                 .value = "FORMAT",
                 .help = "names, hostfile (DeepSpeed), openmpi, slurm, clustershell (groups.d) or ansible"},
                {.names = "--slots", .value = "N", .help = "slots of nodes for which sharefs.yaml gives none"}},
    .run = run_nodes_list,
};

extern const CommandSpec k_nodes_resume_command{
    .name = "nodes resume",
    .summary = "Go on with a change of many nodes that did not reach them all",
    .description = "A change by `--on` leaves a record on the machine that it was typed on. `resume` does it again on "
                   "the nodes where it failed, was not tried, or was not waited for, and on no others. Without RUN "
                   "the newest one.",
    .example = "sharefs nodes resume --list\n"
               "sharefs nodes resume 20261125-181500-a1b2",
    .changes = true,
    .positional = {.name = "RUN", .help = "as --list names it", .max = 1},
    .options = {{.names = "--list", .help = "list the runs instead"}},
    .run = run_nodes_resume,
};

} // namespace sharefs::cli
