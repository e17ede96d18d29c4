// sharefs mirror push, verify, status: copy directories to the nodes' own disks by rsync from this machine. An engine
// starts `mirror node` on this machine, once per node, and its answer counts as the node's.
#include "fleet/mirror.hpp"

#include "base/json.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "cli/on_nodes.hpp"
#include "fleet/engine.hpp"
#include "plan/plan.hpp"
#include "sys/process/interrupt.hpp"
#include "ui/table.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <tuple>

namespace sharefs::cli {

namespace {

using fleet::Mirror;
using fleet::Way;
using fleet::Work;
const OptionSpec k_to{.names = "--to", .value = "NODES", .help = "names, ranges and groups; without it all nodes"};
const OptionSpec k_engine{
    .names = "--engine", .value = "NAME", .help = "the program that starts it for each node: xargs, clush, pdsh"};
// All copies share this machine's network link: a few at a time take no longer in total, and the first ones end sooner.
const OptionSpec k_fanout{.names = "--fanout", .value = "N", .help = "how many nodes at a time", .fallback = "8"};
const OptionSpec k_deadline{
    .names = "--node-deadline", .value = "TIME", .help = "longest time for a node", .fallback = "24h"};

/// Returns the mirrors of sharefs.yaml with these names, or all.
Result<std::vector<Mirror>> chosen_mirrors(Context& context, const std::vector<std::string>& names) {
  TRY_ASSIGN(const auto config, context.config());
  std::vector<std::string> known;
  for (const auto& mirror : config->mirrors)
    known.push_back(mirror.name);
  if (known.empty())
    return fail(ErrorCode::usage, "sharefs.yaml names no mirror",
                "write for example `mirror: {code: {path: /data/code}}` into it");
  std::vector<Mirror> chosen;
  for (const auto& name : names.empty() ? known : names) {
    const auto found = std::ranges::find(known, name);
    if (found == known.end())
      return fail(ErrorCode::usage, fmt::format("no mirror is called `{}`", name),
                  name_hint(name, known, "the mirrors are"));
    const auto& mirror = config->mirrors[static_cast<std::size_t>(found - known.begin())];
    chosen.push_back({.name = mirror.name, .path = mirror.path, .removes = mirror.removes, .exclude = mirror.exclude});
  }
  return chosen;
}

// ---- mirror node ----

/// Answers for a node that was not reached, or that cannot do the work.
Result<int> give_up(Context& context, const fleet::Outcome& outcome) {
  context.envelope.fields["reached"] = {
      {"state", to_string(outcome.state)}, {"why", outcome.why}, {"hint", outcome.hint}};
  if (!context.flags.json)
    context.console.error({ErrorCode::failed, outcome.why, outcome.hint, ""});
  return k_exit_failed;
}

/// Checks the free space of the node before anything is sent, because rsync would find out at the last file.
/// Directories of one file system share the space in `needed`.
std::optional<fleet::Outcome> check_room(const Mirror& mirror, const fleet::Compared& compared, const Way& way,
                                         std::map<std::string, std::uint64_t>& needed) {
  if (!compared.there.room)
    return std::nullopt;
  auto& sum = needed[compared.there.file_system];
  sum += compared.difference.room_needed();
  if (sum <= *compared.there.room)
    return std::nullopt;
  return fleet::Outcome{.node = way.node,
                        .state = fleet::State::failed,
                        .why = fmt::format("{}: {} are needed, and {} are free there", mirror.path, format_bytes(sum),
                                           format_bytes(*compared.there.room)),
                        .hint = fmt::format("make room there: `ssh NODE df -h {}`", shell_quote(mirror.path))};
}

Result<int> push(Context& context, const std::vector<Mirror>& mirrors, const Way& way) {
  plan::Plan plan;
  plan::Report report;
  std::map<std::string, std::uint64_t> needed;
  for (const auto& mirror : mirrors) {
    TRY_ASSIGN(const auto compared, run_rsync(context.system, mirror, Work::preview, way));
    if (compared.problem)
      return give_up(context, *compared.problem);
    if (compared.difference.empty())
      continue;
    // The step has the command as a person would type it; it is the same for all nodes.
    plan.add(mirror.name, compared.difference.text("new", "to delete"), plan::RunTool{rsync_shown(mirror), {}});
    if (const auto full = check_room(mirror, compared, way, needed))
      return give_up(context, *full);
    if (context.flags.changes_nothing())
      continue;
    needed.clear(); // sent files are already subtracted from the free space of the next answer
    TRY_ASSIGN(const auto pushed, run_rsync(context.system, mirror, Work::push, way));
    if (pushed.problem)
      return give_up(context, *pushed.problem);
    report.results.push_back({plan.steps.size() - 1, plan::Outcome::done, std::nullopt});
  }
  const bool is_pending = context.flags.check && !plan.empty();
  context.envelope.plan = std::move(plan);
  context.envelope.report = std::move(report);
  return is_pending ? k_exit_pending : k_exit_ok;
}

/// Reports for each mirror how the node differs from this machine. `is_error`: a difference is a failure of the node.
Result<int> compare(Context& context, const std::vector<Mirror>& mirrors, const Way& way, bool is_error) {
  auto rows = Json::array();
  std::vector<std::string> different, names;
  for (const auto& mirror : mirrors) {
    TRY_ASSIGN(auto compared, run_rsync(context.system, mirror, Work::compare, way));
    if (compared.problem)
      return give_up(context, *compared.problem);
    auto& difference = compared.difference;
    const auto extra = difference.extra;
    if (!mirror.removes)
      difference.extra = 0; // such files belong to the node
    const bool differs = !difference.empty();
    const auto text = difference.text("missing", "too many");
    const auto* state = compared.there.is_missing ? "missing" : differs ? "differs" : "same";
    rows.push_back({{"name", mirror.name},
                    {"state", state},
                    {"what", differs     ? text
                             : extra > 0 ? fmt::format("{} more there", extra)
                                         : ""},
                    {"missing", difference.missing},
                    {"changed", difference.changed},
                    {"attributes", difference.attributes},
                    {"extra", extra}});
    if (differs) {
      different.push_back(fmt::format("{}: {}", mirror.path, text));
      names.push_back(mirror.name);
    }
  }
  context.envelope.fields["mirrors"] = std::move(rows);
  if (different.empty() || !is_error)
    return k_exit_ok;
  return fail(ErrorCode::failed, join(different, "; "),
              fmt::format("`sharefs mirror push --content --to NODE {}` mends it", join(names, " ")));
}

Result<int> run_mirror_node(Context& context, const Arguments& arguments) {
  sys::install_interrupt_handlers(); // so that rsync and ssh end with this process
  const Way way{arguments.value("node").value_or(""), arguments.value("rsh").value_or(""),
                fleet::path_for_engines(context.system, context.environment("PATH").value_or(""))};
  const auto work = arguments.positional.front();
  TRY_ASSIGN(auto mirrors, chosen_mirrors(context, {arguments.positional.begin() + 1, arguments.positional.end()}));
  for (auto& mirror : mirrors) {
    mirror.removes = mirror.removes || arguments.flag("delete");
    mirror.by_content = arguments.flag("content") || work == "verify";
  }
  if (way.node.empty() || way.rsh.empty())
    return fail(ErrorCode::usage, "`sharefs mirror node` is started by `sharefs mirror push`, `verify` and `status`");
  if (work == "push")
    return push(context, mirrors, way);
  if (work == "verify" || work == "status")
    return compare(context, mirrors, way, work == "verify");
  return fail(ErrorCode::usage, fmt::format("`sharefs mirror node` does not know `{}`", work),
              did_you_mean_hint(work, {"push", "verify", "status"}));
}

// ---- push, verify, status ----

/// Returns the arguments of the process that works for each node.
Argv words_for(Context& context, const std::string& work, const std::vector<Mirror>& mirrors) {
  Argv words{"mirror", "node", work};
  for (const auto& mirror : mirrors)
    words.push_back(mirror.name);
  return with_config(context, std::move(words));
}

/// Measures each mirror on this machine. Errors: `not_found` for a missing directory, `timeout` on a dead mount.
Result<std::vector<fleet::Difference>> measure_all(Context& context, const std::vector<Mirror>& mirrors) {
  std::vector<fleet::Difference> sizes;
  ui::Progress progress(context.console, "reading", mirrors.size());
  for (const auto& mirror : mirrors) {
    progress.advance(mirror.path);
    // Another user's link could lead root to files that others may not read.
    const auto entry = context.system.entry({.path = mirror.path, .follow = true, .links = sys::Links::trusted});
    if (entry.kind == sys::EntryKind::unknown)
      return fail(entry.error());
    if (entry.kind != sys::EntryKind::directory)
      return fail(ErrorCode::not_found,
                  fmt::format("mirror {}: there is no directory {} on this machine", mirror.name, mirror.path),
                  "push from a machine that has it");
    TRY_ASSIGN(const auto size, measure(context.system, mirror));
    sizes.push_back(size);
  }
  return sizes;
}

Result<int> run_push(Context& context, const Arguments& arguments) {
  TRY_ASSIGN(auto mirrors, chosen_mirrors(context, arguments.positional));
  TRY_ASSIGN(const auto nodes, other_nodes(context, arguments.value("to").value_or(std::string(fleet::k_all))));
  if (nodes.empty()) {
    context.console.message("there is no other node than this machine");
    return k_exit_ok;
  }
  sys::install_interrupt_handlers();
  TRY_ASSIGN(const auto sizes, measure_all(context, mirrors));
  for (std::size_t i = 0; i < mirrors.size(); ++i) {
    const auto& [mirror, size] = std::tie(mirrors[i], sizes[i]);
    if (size.missing_files == 0 && (mirror.removes || arguments.flag("delete")))
      return fail(
          ErrorCode::conflict,
          fmt::format("mirror {}: {} is empty here, and would be emptied on all nodes", mirror.name, mirror.path),
          "is its file system mounted here?");
    context.console.message(fmt::format("{}: {}, {}, {}", mirror.name, mirror.path,
                                        count_of(size.missing_files, "file"), format_bytes(size.missing_bytes)));
  }
  auto words = words_for(context, "push", mirrors);
  for (const auto* flag : {"delete", "content"})
    if (arguments.flag(flag))
      words.push_back(std::string("--") + flag);
  return change_from_here(context, arguments, nodes, words);
}

/// Prints one row for each mirror and state, with the nodes in that state.
void show_states(Context& context, const std::vector<Mirror>& mirrors, const std::vector<fleet::Outcome>& outcomes) {
  std::map<std::tuple<std::size_t, std::string, std::string>, std::vector<std::string>> rows;
  for (const auto& outcome : outcomes) {
    const auto& states = member(outcome.document, "mirrors");
    for (std::size_t i = 0; states.is_array() && i < std::min(states.size(), mirrors.size()); ++i)
      rows[{i, text_in(states[i], "state"), text_in(states[i], "what")}].push_back(outcome.node);
  }
  ui::Table table({{"MIRROR"}, {"STATE"}, {"COUNT", true}, {"NODES"}, {"WHAT", false, true}});
  for (const auto& [row, names] : rows) {
    const auto& [mirror, state, what] = row;
    table.add({{mirrors[mirror].name},
               {state, state == "same" ? ui::Colour::green : ui::Colour::yellow},
               {std::to_string(names.size())},
               {fleet::fold(names)},
               {what}});
  }
  context.console.show(table);
}

Result<int> run_compare(Context& context, const Arguments& arguments, const std::string& work) {
  TRY_ASSIGN(const auto mirrors, chosen_mirrors(context, arguments.positional));
  TRY_ASSIGN(const auto nodes, other_nodes(context, arguments.value("to").value_or(std::string(fleet::k_all))));
  sys::install_interrupt_handlers();
  TRY(measure_all(context, mirrors)); // check that all mirrors exist here
  TRY_ASSIGN(const auto outcomes, ask_from_here(context, arguments, nodes, words_for(context, work, mirrors)));
  show_states(context, mirrors, outcomes);
  show_outcomes(context, outcomes);
  return fleet::exit_code_of(outcomes);
}

} // namespace

extern const CommandSpec k_mirror_push_command{
    .name = "mirror push",
    .summary = "Bring directories of this machine to the nodes' own disks",
    .description =
        "By rsync over ssh, from this machine to each node: the same path, owners and modes by number, hard links and "
        "ACLs. What each node lacks, and whether it has room for it, is asked and shown first. A file is whole or not "
        "there; what was cut off goes on where it was when pushed again. Nothing is deleted there without --delete or "
        "`delete: true`. rsync must be on the nodes, sharefs need not.",
    .example = "sharefs mirror push                          # all of `mirror:`, to all nodes\n"
               "sharefs mirror push code --to 'gpu[01-16]'\n"
               "sharefs mirror push models --check           # who lacks something? exit code 3",
    .changes = true,
    .positional = {.name = "NAME", .help = "mirrors of sharefs.yaml; without them all"},
    .options = {k_to,
                {.names = "--delete", .help = "delete files on the nodes that this machine does not have"},
                {.names = "--content", .help = "compare files by content, not by size and time"},
                k_engine,
                k_fanout,
                {.names = "--canary", .value = "N", .help = "copy to this many nodes first", .fallback = "1"},
                {.names = "--max-failures",
                 .value = "N|P%",
                 .help = "stop when more nodes than this fail or cannot be reached",
                 .fallback = "3"},
                k_deadline},
    .run = run_push,
};

extern const CommandSpec k_mirror_verify_command{
    .name = "mirror verify",
    .summary = "Compare what the nodes have with this machine, by content",
    .description =
        "Reads every file on both sides (`rsync --checksum`), and so finds what sizes and times do not show: "
        "a file that was changed there, a bad disk. What is there and not here is an error only where "
        "`delete: true` is set.",
    .example = "sharefs mirror verify\n"
               "sharefs mirror verify models --to gpu07",
    .positional = {.name = "NAME", .help = "mirrors of sharefs.yaml; without them all"},
    .options = {k_to, k_engine, k_fanout, k_deadline},
    .run = [](Context& context, const Arguments& arguments) { return run_compare(context, arguments, "verify"); },
};

extern const CommandSpec k_mirror_status_command{
    .name = "mirror status",
    .summary = "Show which node has which state of the directories",
    .description =
        "Asks each node by rsync what it has otherwise than this machine, by names, sizes, times and owners: `same`, "
        "`differs` with how much, `missing`. Equal answers stand in one row. What sizes and times do not show is found "
        "by `sharefs mirror verify`.",
    .example = "sharefs mirror status\n"
               "sharefs mirror status code --json",
    .positional = {.name = "NAME", .help = "mirrors of sharefs.yaml; without them all"},
    .options = {k_to, k_engine, k_fanout, k_deadline},
    .run = [](Context& context, const Arguments& arguments) { return run_compare(context, arguments, "status"); },
};

extern const CommandSpec k_mirror_node_command{
    .name = "mirror node",
    .summary = "Work for one node, as the other commands of `mirror` start it",
    .description =
        "What `sharefs mirror push`, `verify` and `status` start on this machine once per node, with the way "
        "to it.",
    .example = "sharefs mirror node verify code --node gpu1 --rsh 'ssh --'",
    .changes = true,
    .positional = {.name = "WORK", .help = "push, verify or status, then the names of mirrors", .min = 1},
    .options = {{.names = "--node", .value = "NAME", .help = "the node"},
                {.names = "--rsh", .value = "TEXT", .help = "the command line of ssh in front of its name"},
                {.names = "--delete", .help = "as of `mirror push`"},
                {.names = "--content", .help = "as of `mirror push`"}},
    .run = run_mirror_node,
};

} // namespace sharefs::cli
