// sharefs mirror node: the work of push, verify and status for one node. An engine starts it on this machine, once per
// node, and its answer counts as the node's.
#include "base/text.hpp"
#include "base/try.hpp"
#include "cli/commands/mirror/choice.hpp"
#include "cli/exit_code.hpp"
#include "fleet/engine.hpp"
#include "plan/plan.hpp"
#include "sys/process/interrupt.hpp"

#include <fmt/format.h>
#include <map>

namespace sharefs::cli {

namespace {

using fleet::Mirror;
using fleet::Way;
using fleet::Work;
using Json = nlohmann::ordered_json;

/// Answers for a node that was not reached, or that cannot do the work.
Result<int> give_up(Context& context, const fleet::Outcome& outcome) {
  context.envelope.fields["reached"] = {
      {"state", to_string(outcome.state)}, {"why", outcome.why}, {"hint", outcome.hint}};
  if (!context.flags.json)
    context.console.error({ErrorCode::failed, outcome.why, outcome.hint, ""});
  return k_exit_failed;
}

fleet::Outcome failed_there(const Way& way, std::string why, std::string hint) {
  return {.node = way.node, .state = fleet::State::failed, .why = std::move(why), .hint = std::move(hint)};
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
  return failed_there(way,
                      fmt::format("{}: {} are needed, and {} are free there", mirror.path, format_bytes(sum),
                                  format_bytes(*compared.there.room)),
                      fmt::format("make room there: `ssh NODE df -h {}`", shell_quote(mirror.path)));
}

/// Returns the step with the command as a person would type it; it is the same for all nodes.
plan::RunTool shown_step(const Mirror& mirror) {
  plan::RunTool tool;
  tool.argv = rsync_shown(mirror);
  return tool;
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
    plan.add(mirror.name, compared.difference.text("new", "to delete"), shown_step(mirror));
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

} // namespace

extern const CommandSpec k_mirror_node_command{
    .name = "mirror node",
    .summary = "Work for one node, as the other commands of `mirror` start it",
    .description =
        "What `sharefs mirror push`, `verify` and `status` start on this machine once per node, with the way "
        "to it.",
    .example = "sharefs mirror node verify code --node gpu1 --rsh 'ssh --'",
    .effect = Effect::changes,
    .positional = {.name = "WORK", .help = "push, verify or status, then the names of mirrors", .min = 1},
    .options = {{.names = "--node", .value = "NAME", .help = "the node"},
                {.names = "--rsh", .value = "TEXT", .help = "the command line of ssh in front of its name"},
                {.names = "--delete", .help = "as of `mirror push`"},
                {.names = "--content", .help = "as of `mirror push`"}},
    .run = run_mirror_node,
};

} // namespace sharefs::cli
