// sharefs conda generations, diff, rollback, pin, unpin: what has become of a shared environment, and the way back.
#include "cli/commands/conda_generations.hpp"
#include "base/path.hpp"
#include "base/text.hpp"
#include "cli/commands/conda_support.hpp"
#include "cli/execute.hpp"
#include "cli/exit_code.hpp"
#include "conda/generation_plan.hpp"
#include "ui/table.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>

namespace sharefs::cli {

namespace {

constexpr std::chrono::seconds k_look_deadline{10};

using conda::SharedEnvironment;
using conda::StoredGeneration;

/// As the command line names it; the changing ones as the store's owner, and alone.
Result<SharedEnvironment> read_shared(Context& context, const Arguments& arguments) {
  const auto where = store_name(context, arguments.positional.front());
  return where ? shared_environment(context, *where) : fail(where.error());
}

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
  const auto environment = read_shared(context, arguments);
  if (!environment)
    return fail(environment.error());
  const auto live = live_uses(context, *environment);
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

Result<int> run_diff(Context& context, const Arguments& arguments) {
  const auto environment = read_shared(context, arguments);
  if (!environment)
    return fail(environment.error());
  std::array<unsigned, 2> numbers{conda::previous_generation(*environment), environment->current};
  for (std::size_t i = 1; i < arguments.positional.size(); ++i) {
    const auto number = generation_argument(arguments.positional[i]);
    if (!number)
      return fail(number.error());
    numbers.at(i - 1) = *number;
  }
  std::array<const StoredGeneration*, 2> ones{};
  for (std::size_t i = 0; i < 2; ++i) {
    ones.at(i) = environment->find(numbers.at(i));
    if (ones.at(i) == nullptr || !ones.at(i)->record)
      return fail(ErrorCode::not_found,
                  numbers.at(i) == 0
                      ? fmt::format("`{}` has no generation before {}", environment->name, environment->current)
                  : ones.at(i) == nullptr
                      ? fmt::format("`{}` has no generation {}", environment->name, numbers.at(i))
                      : fmt::format("generation {} of `{}` {}", numbers.at(i), environment->name, ones.at(i)->problem),
                  fmt::format("`sharefs conda generations {}` lists them", environment->name));
  }
  const auto changes = conda::package_changes(packages_of(*ones[0]), packages_of(*ones[1]));
  ui::Table table(
      {{"PACKAGE"}, {fmt::format("GENERATION {}", numbers[0])}, {fmt::format("GENERATION {}", numbers[1])}});
  for (const auto& [name, before, after] : changes)
    table.add({{name}, {before.empty() ? "-" : before}, {after.empty() ? "-" : after}});
  context.envelope.fields["environment"] = environment->name;
  context.envelope.fields["from"] = numbers[0];
  context.envelope.fields["to"] = numbers[1];
  context.envelope.fields["changes"] = changes_json(changes);
  context.console.show(table);
  if (changes.empty())
    context.console.message(fmt::format("generations {} and {} have the same packages", numbers[0], numbers[1]));
  return k_exit_ok;
}

/// Also one whose name, or present generation, somebody has removed.
Result<SharedEnvironment> environment_with_generations(Context& context, const StoreName& where) {
  auto found = conda::probe_environment(context.system, where.store, where.name);
  return found && !found->generations.empty() && (found->current != 0 || found->lost_its_name())
             ? found
             : shared_environment(context, where);
}

Result<int> run_rollback(Context& context, const Arguments& arguments) {
  std::optional<unsigned> to;
  if (const auto word = arguments.value("to")) {
    const auto number = generation_argument(*word);
    if (!number)
      return fail(number.error());
    to = *number;
  }
  return change_environment(
      context, arguments.positional.front(), "users see that generation already",
      [&](const SharedEnvironment& environment) -> Result<plan::Plan> {
        const auto number = to.value_or(conda::previous_generation(environment));
        if (number == 0)
          return fail(ErrorCode::not_found,
                      fmt::format("`{}` has no generation before {}", environment.name, environment.current));
        auto plan = conda::plan_rollback(environment, number);
        const auto* one = plan ? environment.find(number) : nullptr;
        if (one == nullptr || plan->empty())
          return plan;
        const auto* now = environment.find(environment.current);
        if (now == nullptr)
          return plan;
        for (const auto& [name, before, after] : conda::package_changes(packages_of(*now), packages_of(*one)))
          plan->notes.push_back(
              fmt::format("{}: {} -> {}", name, before.empty() ? "-" : before, after.empty() ? "-" : after));
        return plan;
      },
      environment_with_generations);
}

Result<int> run_pin(Context& context, const Arguments& arguments, bool pin) {
  const auto number = generation_argument(arguments.positional[1]);
  if (!number)
    return fail(number.error());
  return change_environment(
      context, arguments.positional.front(), pin ? "it is pinned already" : "it is not pinned",
      [&](const SharedEnvironment& environment) {
        const auto* one = environment.find(*number);
        const auto reason = one != nullptr ? one->pinned.value_or("") : ""; // which it has, if no other is given
        return pin ? conda::plan_pin(environment, *number, arguments.value("message").value_or(reason))
                   : conda::plan_unpin(environment, *number);
      });
}

constexpr PositionalSpec k_environment{
    .name = "ENV", .help = "a shared environment, by its name in the store", .min = 1, .max = 1};

} // namespace

std::vector<conda::Use> live_uses(Context& context, const SharedEnvironment& environment) {
  std::vector<conda::Use> live, ended;
  for (const auto& use : environment.uses)
    if (conda::keeps(context.system, use))
      live.push_back(use);
    else if (conda::runs(context.system, use) == false)
      ended.push_back(use);
  clear_uses(context, environment.store, environment.name, std::move(ended));
  std::map<std::uint32_t, std::string> names;
  for (auto& use : live) {
    const auto [known, is_new] = names.try_emplace(use.uid);
    if (is_new) {
      const auto user = context.system.user(std::to_string(use.uid));
      known->second = user ? user->name : fmt::format("uid {}", use.uid);
    }
    use.user = known->second;
  }
  return live;
}

Result<int> change_environment(Context& context, const std::string& word, std::string_view nothing,
                               const MakePlan& make, const FindEnvironment& find, const LookAgain& look_again) {
  const auto where = store_name(context, word);
  if (!where)
    return fail(where.error());
  const bool looks_only = context.flags.dry_run || context.flags.check;
  if (auto done = work_as_owner(context, where->store); !done || *done)
    return done.map([](const auto& code) { return *code; });
  auto environment = find(context, *where);
  if (!environment)
    return fail(environment.error());
  std::optional<sys::Lease> lease;
  if (!looks_only) {
    auto taken = take_lease(context, *environment);
    if (!taken)
      return fail(taken.error());
    lease.emplace(std::move(*taken));
    environment = find(context, *where); // as the one before us has left it
    if (!environment)
      return fail(environment.error());
  }
  const Result<plan::Plan> plan = make(*environment);
  if (!plan)
    return fail(plan.error());
  if (lease)
    if (auto ours = lease->check(); !ours)
      return fail(ours.error());
  Proposal proposal{*plan, std::string(nothing)};
  bool refused = false;
  if (look_again)
    proposal.before_groups = [&]() -> Result<void> {
      const auto root = environment->root.path; // where others may have left their notes
      const auto fresh = sys::look_afresh(context.system, {root, join_path(root, "uses")}, k_look_deadline);
      const auto now =
          fresh ? conda::probe_environment(context.system, where->store, where->name) : fail(fresh.error());
      auto answer = now ? look_again(*now) : fail(now.error());
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

extern const CommandSpec k_conda_diff_command{
    .name = "conda diff",
    .summary = "Compare the packages of two generations",
    .description = "Without numbers: the present generation with the one before it.",
    .example = "sharefs conda diff llm_train\n"
               "sharefs conda diff llm_train 2 5",
    .positional = {.name = "ENV [N M]", .help = "a shared environment, and two of its generations", .min = 1, .max = 3},
    .elsewhere = read_as_whoever_may,
    .run = run_diff,
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
    .run = [](Context& context, const Arguments& arguments) { return run_pin(context, arguments, true); },
};

extern const CommandSpec k_conda_unpin_command{
    .name = "conda unpin",
    .summary = "Let `conda gc` delete a generation again",
    .description = "Takes back `conda pin`.",
    .example = "sharefs conda unpin llm_train 4",
    .effect = Effect::changes,
    .positional = {.name = "ENV N", .help = "a shared environment, and a generation of it", .min = 2, .max = 2},
    .run = [](Context& context, const Arguments& arguments) { return run_pin(context, arguments, false); },
};

} // namespace sharefs::cli
