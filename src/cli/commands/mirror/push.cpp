// sharefs mirror push, verify, status: directories on the nodes' own disks, by rsync from this machine.
#include "base/text.hpp"
#include "cli/commands/mirror/choice.hpp"
#include "cli/exit_code.hpp"
#include "cli/fleet_view.hpp"
#include "cli/on_nodes.hpp"
#include "sys/process/interrupt.hpp"
#include "ui/table.hpp"

#include <algorithm>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <map>
#include <tuple>

namespace sharefs::cli {

namespace {

using fleet::Mirror;

const OptionSpec k_to{.names = "--to", .value = "NODES", .help = "names, ranges and groups; without it all nodes"};
const OptionSpec k_engine{
    .names = "--engine", .value = "NAME", .help = "what starts it for each node: xargs, clush, pdsh"};
// All copies share this machine's link: a few at a time are through sooner than many, and as fast together.
const OptionSpec k_fanout{.names = "--fanout", .value = "N", .help = "how many nodes at a time", .fallback = "8"};
const OptionSpec k_deadline{
    .names = "--node-deadline", .value = "TIME", .help = "by when it ends for a node", .fallback = "24h"};

/// The words that each node's own process is given.
Argv words_for(Context& context, const std::string& work, const std::vector<Mirror>& mirrors,
               const std::vector<fleet::Listing>& listings) {
  Argv words{"mirror", "node", work};
  for (const auto& mirror : mirrors)
    words.push_back(mirror.name);
  for (const auto& listing : listings)
    words.insert(words.end(), {"--state", listing.state});
  if (!context.flags.config.empty())
    words.insert(words.end(), {"--config", context.config_path()});
  return words;
}

/// What is here of each. Errors: `not_found` for a directory that is not there, `timeout` on a dead mount.
Result<std::vector<fleet::Listing>> list_all(Context& context, const std::vector<Mirror>& mirrors) {
  std::vector<fleet::Listing> listings;
  ui::Console::Progress progress(context.console, "reading", mirrors.size());
  for (const auto& mirror : mirrors) {
    progress.advance(mirror.path);
    const auto entry = context.system.entry({.path = mirror.path, .follow = true});
    if (entry.kind == sys::EntryKind::unknown)
      return fail(entry.error());
    if (entry.kind != sys::EntryKind::directory)
      return fail(ErrorCode::not_found,
                  fmt::format("mirror {}: there is no directory {} on this machine", mirror.name, mirror.path),
                  "push from a machine that has it");
    auto listing = list_mirror(context.system, mirror);
    if (!listing)
      return fail(listing.error());
    listings.push_back(std::move(*listing));
  }
  return listings;
}

Result<int> run_push(Context& context, const Arguments& arguments) {
  auto mirrors = chosen_mirrors(context, arguments.positional);
  const auto nodes = mirrors ? other_nodes(context, arguments) : fail(mirrors.error());
  if (!nodes)
    return fail(nodes.error());
  if (nodes->empty()) {
    context.console.message("there is no other node than this machine");
    return k_exit_ok;
  }
  sys::install_interrupt_handlers();
  const auto listings = list_all(context, *mirrors);
  if (!listings)
    return fail(listings.error());
  for (std::size_t i = 0; i < mirrors->size(); ++i) {
    const auto& [mirror, listing] = std::tie((*mirrors)[i], (*listings)[i]);
    if (listing.files == 0 && (mirror.removes || arguments.flag("delete")))
      return fail(
          ErrorCode::conflict,
          fmt::format("mirror {}: {} is empty here, and would be emptied on all nodes", mirror.name, mirror.path),
          "is its file system mounted here?");
    context.console.message(fmt::format("{}: {}, {}, {}", mirror.name, mirror.path, count_of(listing.files, "file"),
                                        format_bytes(listing.bytes)));
  }
  auto words = words_for(context, "push", *mirrors, *listings);
  for (const auto* flag : {"delete", "content"})
    if (arguments.flag(flag))
      words.push_back(std::string("--") + flag);
  return change_from_here(context, arguments, *nodes, words);
}

Result<int> run_mirror_verify(Context& context, const Arguments& arguments) {
  const auto mirrors = chosen_mirrors(context, arguments.positional);
  const auto nodes = mirrors ? other_nodes(context, arguments) : fail(mirrors.error());
  if (!nodes)
    return fail(nodes.error());
  if (const auto listings = list_all(context, *mirrors); !listings) // is it all here?
    return fail(listings.error());
  const auto outcomes = ask_from_here(context, arguments, *nodes, words_for(context, "verify", *mirrors, {}));
  if (!outcomes)
    return fail(outcomes.error());
  show_outcomes(context, *outcomes);
  return fleet::exit_code_of(*outcomes);
}

/// One row for each mirror and state, with the nodes that have it.
void show_states(Context& context, const std::vector<Mirror>& mirrors, const std::vector<fleet::Outcome>& outcomes) {
  std::map<std::tuple<std::size_t, std::string, std::string>, std::vector<std::string>> rows;
  for (const auto& outcome : outcomes) {
    if (outcome.state != fleet::State::ok || !outcome.document.is_object())
      continue;
    const auto told = outcome.document.value("mirrors", nlohmann::ordered_json::array());
    for (std::size_t i = 0; i < told.size() && i < mirrors.size(); ++i) {
      const auto at = told[i].value("pushed", std::int64_t{0});
      const auto pushed = at == 0 ? ""
                                  : fmt::format("{:%Y-%m-%d %H:%M} UTC from {}", fmt::gmtime(std::time_t{at}),
                                                told[i].value("from", ""));
      rows[{i, told[i].value("state", ""), pushed}].push_back(outcome.node);
    }
  }
  ui::Table table({{"MIRROR"}, {"STATE"}, {"COUNT", true}, {"NODES"}, {"PUSHED", false, true}});
  for (const auto& [row, names] : rows) {
    const auto& [mirror, state, pushed] = row;
    table.add({{mirrors[mirror].name},
               {state, state == "current" ? ui::Colour::green : ui::Colour::yellow},
               {std::to_string(names.size())},
               {fleet::fold(names)},
               {pushed}});
  }
  context.console.show(table);
}

Result<int> run_mirror_status(Context& context, const Arguments& arguments) {
  const auto mirrors = chosen_mirrors(context, arguments.positional);
  const auto nodes = mirrors ? other_nodes(context, arguments) : fail(mirrors.error());
  const auto listings = nodes ? list_all(context, *mirrors) : fail(nodes.error());
  if (!listings)
    return fail(listings.error());
  const auto outcomes = ask_from_here(context, arguments, *nodes, words_for(context, "status", *mirrors, *listings));
  if (!outcomes)
    return fail(outcomes.error());
  show_states(context, *mirrors, *outcomes);
  show_outcomes(context, *outcomes);
  return fleet::exit_code_of(*outcomes);
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
                {.names = "--delete", .help = "delete there what is not here"},
                {.names = "--content", .help = "compare files by content, not by size and time"},
                k_engine,
                k_fanout,
                {.names = "--canary", .value = "N", .help = "so many nodes first", .fallback = "1"},
                {.names = "--max-failures",
                 .value = "N|P%",
                 .help = "more nodes that fail or cannot be reached end it",
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
    .run = run_mirror_verify,
};

extern const CommandSpec k_mirror_status_command{
    .name = "mirror status",
    .summary = "Show which node has which state of the directories",
    .description =
        "Each node keeps a mark of what it was brought last. `current`: what this machine has now, by names, sizes, "
        "times and owners; `older`: another state; `incomplete`: a push was cut off; `not pushed`; `missing`: the "
        "directory is gone. What was changed there since is found by `sharefs mirror verify`.",
    .example = "sharefs mirror status\n"
               "sharefs mirror status code --json",
    .effect = Effect::reads,
    .positional = {.name = "NAME", .help = "mirrors of sharefs.yaml; without them all"},
    .options = {k_to, k_engine, k_fanout, k_deadline},
    .run = run_mirror_status,
};

} // namespace sharefs::cli
