// sharefs mirror push, verify, status: copies directories to the nodes' own disks by rsync from this machine.
#include "base/json.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "cli/commands/mirror/choice.hpp"
#include "cli/exit_code.hpp"
#include "cli/fleet_view.hpp"
#include "cli/on_nodes.hpp"
#include "sys/process/interrupt.hpp"
#include "ui/table.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <tuple>

namespace sharefs::cli {

namespace {

using fleet::Mirror;

const OptionSpec k_to{.names = "--to", .value = "NODES", .help = "names, ranges and groups; without it all nodes"};
const OptionSpec k_engine{
    .names = "--engine", .value = "NAME", .help = "the program that starts it for each node: xargs, clush, pdsh"};
// All copies share this machine's network link: a few at a time take no longer in total, and the first ones end sooner.
const OptionSpec k_fanout{.names = "--fanout", .value = "N", .help = "how many nodes at a time", .fallback = "8"};
const OptionSpec k_deadline{
    .names = "--node-deadline", .value = "TIME", .help = "longest time for a node", .fallback = "24h"};

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
  ui::Console::Progress progress(context.console, "reading", mirrors.size());
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
    .effect = Effect::changes,
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
    .effect = Effect::reads,
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
    .effect = Effect::reads,
    .positional = {.name = "NAME", .help = "mirrors of sharefs.yaml; without them all"},
    .options = {k_to, k_engine, k_fanout, k_deadline},
    .run = [](Context& context, const Arguments& arguments) { return run_compare(context, arguments, "status"); },
};

} // namespace sharefs::cli
