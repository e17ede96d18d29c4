// sharefs conda generations, rollback, pin, unpin: what has become of a shared environment, and the way back.
#include "cli/commands/conda/generations.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "cli/commands/conda/worker.hpp"
#include "cli/execute.hpp"
#include "cli/exit_code.hpp"
#include "cli/say.hpp"
#include "conda/generation_plan.hpp"
#include "ui/table.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace sharefs::cli {

namespace {

constexpr std::chrono::seconds k_look_deadline{10};

using conda::SharedEnvironment;
using conda::StoredGeneration;

const std::vector<conda::Package>& packages_of(const StoredGeneration& one) {
  static const std::vector<conda::Package> k_none;
  return one.record ? one.record->packages : k_none;
}

std::string state_of(const SharedEnvironment& environment, const StoredGeneration& one,
                     const std::vector<conda::Use>& live) {
  std::vector<std::string> words;
  if (one.number == environment.current)
    words.emplace_back("current");
  if (one.pinned)
    words.emplace_back("pinned");
  if (const auto uses = std::ranges::count(live, one.number, &conda::Use::generation); uses > 0)
    words.push_back(fmt::format("in use by {}", uses));
  if (!one.record)
    words.push_back(one.problem);
  return join(words, ", ");
}

nlohmann::ordered_json changes_json(const std::vector<conda::PackageChange>& changes) {
  auto list = nlohmann::ordered_json::array();
  for (const auto& [name, before, after] : changes)
    list.push_back({{"name", name}, {"before", before}, {"after", after}});
  return list;
}

Result<int> run_generations(Context& context, const Arguments& arguments) {
  const auto where = store_name(context, arguments.positional.front());
  if (!where)
    return fail(where.error());
  const auto environment = conda::find_shared(context.system, where->store, where->name);
  if (!environment)
    return fail(environment.error());
  const auto live = conda::live_uses(context.system, *environment);
  ui::Table table({{"N", true},
                   {"WHEN (UTC)"},
                   {"WHO"},
                   {"PACKAGES"},
                   {"SIZE", true},
                   {"OWN", true},
                   {"STATE"},
                   {"COMMAND", false, true},
                   {"MESSAGE", false, true}});
  auto json = nlohmann::ordered_json::array();
  const StoredGeneration* before = nullptr;
  for (const auto& one : environment->generations) {
    const auto record = one.record.value_or(conda::Generation{});
    if (const auto* parent = environment->find(record.parent))
      before = parent;
    const auto changes = before != nullptr ? conda::package_changes(packages_of(*before), packages_of(one))
                                           : std::vector<conda::PackageChange>{};
    const auto state = state_of(*environment, one, live);
    auto packages = count_of(record.packages.size(), "package");
    if (const auto summary = conda::summary_of(changes); !summary.empty())
      packages += " (" + summary + ")";
    table.add({{std::to_string(one.number)},
               {one.record ? format_time(record.created) : "-"},
               {one.record ? record.user + "@" + record.host : "-"},
               {one.record ? packages : "-"},
               {one.record ? format_bytes(record.bytes) : "-"},
               {one.record ? format_bytes(record.own_bytes) : "-"},
               {state},
               {record.command},
               {record.message}});
    json.push_back({{"number", one.number},
                    {"path", to_utf8(environment->path(one.number))},
                    {"created", record.created},
                    {"user", record.user},
                    {"host", record.host},
                    {"command", record.command},
                    {"message", record.message},
                    {"python", record.python},
                    {"packages", record.packages.size()},
                    {"changes", changes_json(changes)},
                    {"files", record.files},
                    {"bytes", record.bytes},
                    {"own_bytes", record.own_bytes},
                    {"current", one.number == environment->current},
                    {"pinned", one.pinned.has_value()},
                    {"problem", one.problem}});
    before = &one;
  }
  context.envelope.fields["environment"] = environment->name;
  context.envelope.fields["generations"] = std::move(json);
  context.console.show(table);
  if (environment->holder)
    context.console.message("being changed by " + environment->holder->text());
  return k_exit_ok;
}

Result<int> run_rollback(Context& context, const Arguments& arguments) {
  std::optional<unsigned> to;
  if (const auto word = arguments.value("to")) {
    const auto number = generation_argument(*word);
    if (!number)
      return fail(number.error());
    to = *number;
  }
  EnvironmentChange change;
  change.nothing = "users see that generation already";
  change.find = conda::find_with_generations;
  change.make = [&](const SharedEnvironment& environment) -> Result<plan::Plan> {
    const auto number = to.value_or(conda::previous_generation(environment));
    if (number == 0)
      return fail(ErrorCode::not_found,
                  fmt::format("`{}` has no generation before {}", environment.name, environment.current));
    return conda::plan_rollback(environment, number);
  };
  return change_environment(context, arguments.positional.front(), change);
}

Result<int> run_pin(Context& context, const Arguments& arguments, bool pin) {
  const auto number = generation_argument(arguments.positional[1]);
  if (!number)
    return fail(number.error());
  EnvironmentChange change;
  change.nothing = pin ? "it is pinned already" : "it is not pinned";
  change.make = [&](const SharedEnvironment& environment) {
    const auto* one = environment.find(*number);
    const auto reason = one != nullptr ? one->pinned.value_or("") : ""; // stays, if no other is given
    return pin ? conda::plan_pin(environment, *number, arguments.value("message").value_or(reason))
               : conda::plan_unpin(environment, *number);
  };
  return change_environment(context, arguments.positional.front(), change);
}

constexpr PositionalSpec k_environment{
    .name = "ENV", .help = "a shared environment, by its name in the store", .min = 1, .max = 1};

} // namespace

Result<int> change_environment(Context& context, const std::string& word, const EnvironmentChange& change) {
  const auto where = store_name(context, word);
  if (!where)
    return fail(where.error());
  auto environment = change.find(context.system, where->store, where->name);
  if (!environment)
    return fail(environment.error());
  std::optional<sys::Lease> lease;
  if (!context.flags.dry_run && !context.flags.check) {
    auto taken = conda::take_lease(context.system, *environment, lease_wish(context), say_to(context));
    if (!taken)
      return fail(taken.error());
    lease.emplace(std::move(*taken));
    environment = change.find(context.system, where->store, where->name); // as the one before us has left it
    if (!environment)
      return fail(environment.error());
  }
  const Result<plan::Plan> plan = change.make(*environment);
  if (!plan)
    return fail(plan.error());
  if (lease)
    if (auto ours = lease->check(); !ours)
      return fail(ours.error());
  Proposal proposal{*plan, change.nothing};
  bool refused = false;
  if (change.look_again)
    proposal.before_groups = [&]() -> Result<void> {
      const auto root = environment->root.path; // where others may have left their notes
      const auto fresh = sys::refresh_attributes(context.system, {root, join_path(root, "uses")}, k_look_deadline);
      const auto now =
          fresh ? conda::probe_environment(context.system, where->store, where->name) : fail(fresh.error());
      auto answer = now ? change.look_again(*now) : fail(now.error());
      refused = !answer;
      return answer;
    };
  const auto executed = execute(context, [&]() -> Result<Proposal> { return proposal; });
  if (executed && refused)
    if (auto undone = roll_back(context, executed->report->journal_id, "the generations are in use"); !undone)
      return fail(undone.error());
  return executed.map(&Executed::exit_code);
}

extern const CommandSpec k_conda_generations_command{
    .name = "conda generations",
    .summary = "List what has become of a shared environment",
    .description = "Every change of a shared environment makes a new generation beside the old one: when, by whom, by "
                   "which command, what it changed in the packages (+ added, - removed, ~ other version), how large it "
                   "is, and how much of that no earlier one has.",
    .example = "sharefs conda generations llm_train",
    .positional = k_environment,
    .elsewhere = read_as_whoever_may,
    .run = run_generations,
};

extern const CommandSpec k_conda_rollback_command{
    .name = "conda rollback",
    .summary = "Give users an earlier generation of an environment again",
    .description = "Exchanges one link, in one moment, on all hosts. Nothing is deleted: the generation that was left "
                   "stays, and can be returned to. What runs by `sharefs conda run` keeps the generation it has.",
    .example = "sharefs conda rollback llm_train             # the one before the present one\n"
               "sharefs conda rollback llm_train --to 3",
    .effect = Effect::changes,
    .positional = k_environment,
    .options = {{.names = "--to", .value = "N", .help = "this generation, earlier or later"}},
    .elsewhere = change_store_as_owner,
    .run = run_rollback,
};

extern const CommandSpec k_conda_pin_command{
    .name = "conda pin",
    .summary = "Keep a generation of an environment",
    .description = "`conda gc` does not delete it, whatever its age.",
    .example = "sharefs conda pin llm_train 4 --message 'paper'",
    .effect = Effect::changes,
    .positional = {.name = "ENV N", .help = "a shared environment, and a generation of it", .min = 2, .max = 2},
    .options = {{.names = "--message", .value = "TEXT", .help = "why, for the others"}},
    .elsewhere = change_store_as_owner,
    .run = [](Context& context, const Arguments& arguments) { return run_pin(context, arguments, true); },
};

extern const CommandSpec k_conda_unpin_command{
    .name = "conda unpin",
    .summary = "Let `conda gc` delete a generation again",
    .description = "Takes back `conda pin`.",
    .example = "sharefs conda unpin llm_train 4",
    .effect = Effect::changes,
    .positional = {.name = "ENV N", .help = "a shared environment, and a generation of it", .min = 2, .max = 2},
    .elsewhere = change_store_as_owner,
    .run = [](Context& context, const Arguments& arguments) { return run_pin(context, arguments, false); },
};

} // namespace sharefs::cli
