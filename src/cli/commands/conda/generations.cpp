// sharefs conda generations, rollback: what has become of a shared environment, and the way back.
#include "base/json_fields.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "cli/commands/conda/support.hpp"
#include "conda/change.hpp"
#include "ui/table.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::cli {

namespace {

using conda::SharedEnvironment;
using conda::StoredGeneration;

constexpr PositionalSpec k_environment{
    .name = "ENV", .help = "a shared environment, by its name in the store", .min = 1, .max = 1};

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

Result<int> run_generations(Context& context, const Arguments& arguments) {
  TRY_ASSIGN(const auto where, store_name(context, arguments.positional.front()));
  TRY_ASSIGN(const auto environment, conda::find_shared(context.system, where.store, where.name));
  const auto live = conda::find_live_uses(context.system, environment);
  ui::Table table({{"N", true},
                   {"WHEN (UTC)"},
                   {"WHO"},
                   {"PACKAGES"},
                   {"SIZE", true},
                   {"OWN", true},
                   {"IMAGE", true},
                   {"STATE"},
                   {"COMMAND", false, true},
                   {"MESSAGE", false, true}});
  auto json = Json::array();
  const StoredGeneration* before = nullptr;
  for (const auto& one : environment.generations) {
    const auto record = one.record.value_or(conda::Generation{});
    if (const auto* parent = environment.find(record.parent))
      before = parent;
    const auto earlier = before != nullptr ? before->record.value_or(conda::Generation{}) : record;
    const auto changes = conda::package_changes(earlier.packages, record.packages);
    const auto state = state_of(environment, one, live);
    auto packages = count_of(record.packages.size(), "package");
    if (const auto summary = conda::summary_of(changes); !summary.empty())
      packages += " (" + summary + ")";
    table.add({{std::to_string(one.number)},
               {one.record ? format_time(record.created) : "-"},
               {one.record ? record.user + "@" + record.host : "-"},
               {one.record ? packages : "-"},
               {one.record ? format_bytes(record.bytes) : "-"},
               {one.record ? format_bytes(record.own_bytes) : "-"},
               {one.image.exists() ? format_bytes(one.image.size) : "-"},
               {state},
               {record.command},
               {record.message}});
    auto row = json_of(record);
    row["number"] = one.number;
    row["path"] = to_utf8(environment.path(one.number));
    row["packages"] = record.packages.size();
    row["changes"] = json_of(changes);
    row["image"] = one.image.exists() ? Json(one.image.size) : Json();
    row["current"] = one.number == environment.current;
    row["pinned"] = one.pinned.has_value();
    row["problem"] = one.problem;
    json.push_back(std::move(row));
    before = &one;
  }
  context.envelope.fields["environment"] = environment.name;
  context.show(table, "generations", std::move(json));
  if (environment.holder)
    context.console.message("being changed by " + environment.holder->text());
  return k_exit_ok;
}

Result<int> run_rollback(Context& context, const Arguments& arguments) {
  std::optional<unsigned> to;
  if (const auto word = arguments.value("to")) {
    TRY_ASSIGN(to, generation_argument(*word));
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

} // namespace

extern const CommandSpec k_conda_generations_command{
    .name = "conda generations",
    .summary = "List the generations of a shared environment",
    .description = "Every change of a shared environment makes a new generation beside the old one: when, by whom, by "
                   "which command, what it changed in the packages (+ added, - removed, ~ other version), how large it "
                   "is, how much of that no earlier one has, and the size of its image.",
    .example = "sharefs conda generations llm_train",
    .positional = k_environment,
    .elsewhere = read_as_permitted_user,
    .run = run_generations,
};

extern const CommandSpec k_conda_rollback_command{
    .name = "conda rollback",
    .summary = "Give users an earlier generation of an environment again",
    .description = "Replaces one link, in one moment, on all hosts. Nothing is deleted: the generation that was left "
                   "stays, and can be returned to. What runs by `sharefs conda run` keeps the generation it has.",
    .example = "sharefs conda rollback llm_train             # the one before the present one\n"
               "sharefs conda rollback llm_train --to 3",
    .changes = true,
    .positional = k_environment,
    .options = {{.names = "--to", .value = "N", .help = "this generation, earlier or later"}},
    .elsewhere = change_store_as_owner,
    .run = run_rollback,
};

} // namespace sharefs::cli
