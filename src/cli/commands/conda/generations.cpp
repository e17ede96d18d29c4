// sharefs conda generations, rollback, gc, image: what has become of a shared environment, the way back, and the images
// of its generations.
#include "base/json_fields.hpp"
#include "base/number.hpp"
#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "cli/commands/conda/support.hpp"
#include "cli/execute.hpp"
#include "conda/change.hpp"
#include "conda/collect.hpp"
#include "exports/host.hpp"
#include "plan/plan.hpp"
#include "ui/table.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <map>

namespace sharefs::cli {

namespace {

using conda::SharedEnvironment;
using conda::StoredGeneration;

constexpr PositionalSpec k_environment{
    .name = "ENV", .help = "a shared environment, by its name in the store", .min = 1, .max = 1};

/// Reads the number of a generation (`--to`, `N`). Error `usage` for anything else.
Result<unsigned> generation_argument(const std::string& word) {
  const auto number = word.size() <= 4 ? parse_number<unsigned>(word).value_or(0) : 0;
  return number > 0 ? Result<unsigned>(number)
                    : fail(ErrorCode::usage, fmt::format("`{}` is no number of a generation", word),
                           "`sharefs conda generations ENV` lists them");
}

// ---- generations ----

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

// ---- rollback ----

struct EnvironmentChange {
  std::string nothing; ///< message when there is nothing to do
  std::function<Result<conda::SharedEnvironment>(sys::System&, const std::string& store, const std::string& name)> find;
  std::function<Result<plan::Plan>(const conda::SharedEnvironment&)> make;
  /// Checks again when the first steps are done (see plan::ApplyOptions); if it refuses, these steps are undone. May be
  /// empty.
  std::function<Result<void>(const conda::SharedEnvironment& now)> check_again = {};
};
/// Reads the environment again under its lease, makes a plan with `make`, and executes it.
Result<int> change_environment(Context& context, const std::string& word, const EnvironmentChange& change) {
  TRY_ASSIGN(const auto where, store_name(context, word));
  TRY_ASSIGN(auto environment, change.find(context.system, where.store, where.name));
  std::optional<sys::Lease> lease;
  if (!context.flags.changes_nothing()) {
    TRY_ASSIGN(auto taken, conda::take_lease(context.system, environment, lease_settings(context), say_to(context)));
    lease.emplace(std::move(taken));
    // Under the lease it is final: the former holder may have changed it.
    TRY_ASSIGN(environment, change.find(context.system, where.store, where.name));
  }
  TRY_ASSIGN(auto plan, change.make(environment));
  if (lease)
    TRY(lease->check());
  Proposal proposal{std::move(plan), change.nothing};
  bool refused = false;
  if (change.check_again)
    proposal.before_groups = [&]() -> Result<void> {
      const auto now = conda::probe_environment(context.system, where.store, where.name);
      auto answer = now ? change.check_again(*now) : fail(now.error());
      refused = !answer;
      return answer;
    };
  const auto executed = execute(context, [&]() -> Result<Proposal> { return proposal; });
  if (executed && refused)
    TRY(roll_back(context, executed->report->journal_id, "the generations are in use"));
  return executed.map(&Executed::exit_code);
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

// ---- gc ----

/// Collects the generations of one environment. `seen` are the programs of all users on this host.
Result<int> collect(Context& context, const Arguments& arguments, const std::string& word,
                    const std::vector<conda::RunningProgram>& seen) {
  std::optional<unsigned> keep;
  if (const auto given = arguments.value("keep")) {
    const auto number = generation_argument(*given);
    if (!number)
      return fail(ErrorCode::usage, fmt::format("--keep: `{}` is no number from 1 on", *given));
    keep = *number;
  }
  conda::CollectRequest request;
  request.forgotten = arguments.list("forget");
  request.programs = seen;
  request.only_plans = context.flags.changes_nothing();
  request.is_exported = [&](const std::string& directory) {
    const auto exported = exports::read_etab(context.system.files());
    return exported && std::ranges::any_of(
                           *exported, [&](const exports::Export& one) { return is_under(directory, one.directory); });
  };
  std::vector<conda::Kept> kept;
  EnvironmentChange change;
  change.nothing = "nothing is to be deleted";
  change.find = conda::find_collectable;
  change.make = [&](const conda::SharedEnvironment& environment) -> Result<plan::Plan> {
    request.keep = keep.value_or((*context.config())->conda->settings_of(environment.name).keep);
    TRY_ASSIGN(auto collection, conda::collect(context.system, environment, request, say_to(context)));
    kept = std::move(collection.kept);
    return std::move(collection.plan);
  };
  change.check_again = [&](const conda::SharedEnvironment& now) {
    return conda::check_unused(context.system, now, request, kept);
  };
  return change_environment(context, word, change);
}

/// The environment variable with the programs on this host, one per generation: a worker sees only its own user's
/// programs.
constexpr std::string_view k_programs = "SHAREFS_CONDA_PROGRAMS";

std::string programs_text(const std::vector<conda::RunningProgram>& programs) {
  std::map<std::string, int> one_of_each;
  for (const auto& [pid, in] : programs)
    one_of_each.try_emplace(conda::generation_path(in.store, in.name, in.number), pid);
  std::vector<std::string> words;
  for (const auto& [path, pid] : one_of_each)
    words.push_back(fmt::format("{}:{}", pid, path));
  return join(words, "\n");
}

std::vector<conda::RunningProgram> programs_in(std::string_view text) {
  std::vector<conda::RunningProgram> programs;
  for (const auto& word : split(text, '\n')) {
    const auto colon = std::min(word.find(':'), word.size());
    const int pid = parse_number<int>(std::string_view(word).substr(0, colon)).value_or(0);
    if (auto in = conda::in_generation(std::string_view(word).substr(std::min(colon + 1, word.size()))))
      programs.push_back({pid, std::move(*in)});
  }
  return programs;
}

std::optional<Result<int>> work_elsewhere(Context& context, const Arguments& /*arguments*/) {
  TRY_ASSIGN(const auto section, conda_section(context));
  const auto programs = programs_text(conda::running_programs(context.system));
  return work_as_owner(context, section->store, {.environment = {fmt::format("{}={}", k_programs, programs)}});
}

Result<int> run_gc(Context& context, const Arguments& arguments) {
  TRY_ASSIGN(const auto section, conda_section(context));
  auto programs = conda::running_programs(context.system);
  std::ranges::move(programs_in(context.environment(k_programs).value_or("")), std::back_inserter(programs));
  auto names = arguments.positional;
  if (names.empty())
    names =
        context.system.entry({.path = conda::generations_path(section->store, ""), .follow = true, .list = true}).names;
  if (names.size() == 1)
    return collect(context, arguments, names.front(), programs);
  return for_each_environment(context, names,
                              [&](const std::string& name) { return collect(context, arguments, name, programs); });
}

// ---- image ----

Result<int> run_image(Context& context, const Arguments& arguments) {
  TRY_ASSIGN(const auto where, store_name(context, arguments.positional.front()));
  TRY_ASSIGN(const auto imaging, conda::plan_image(context.system, where.store, where.name, say_to(context)));
  Proposal proposal{imaging.plan, "the present generation has an image"};
  proposal.takes_long = true;
  const auto make = [&] {
    auto made = conda::make_missing_image(context.system, imaging, lease_settings(context), say_to(context));
    if (made)
      context.envelope.fields["image"] = json_of(*made->image);
    return made;
  };
  return execute_switch(context, std::move(proposal), make).map(&Executed::exit_code);
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

extern const CommandSpec k_conda_gc_command{
    .name = "conda gc",
    .summary = "Delete generations that are no longer needed",
    .description = "Keeps the present generation, those that have a file NNNN.pinned beside them (`touch` makes one, "
                   "and what stands in it is the reason), those that a process of `sharefs conda run` uses on any "
                   "host, or any program on this one, and the last `conda.keep`. Also deletes what a command that was "
                   "killed has left. Cannot be undone; the plan says what is kept, and why.",
    .example = "sharefs conda gc llm_train --dry-run\n"
               "sharefs conda gc llm_train --keep 1\n"
               "sharefs conda gc                    # of all shared environments",
    .changes = true,
    .positional = {.name = "ENV", .help = "shared environments, by their names in the store; all if none is named"},
    .options = {{.names = "--keep", .value = "N", .help = "the last N, instead of `conda.keep`"},
                {.names = "--forget",
                 .value = "HOST",
                 .help =
                     "ignore the processes of this host, which is gone for good; USER@HOST or USER@: of that user only",
                 .repeat = true}},
    .on_nodes = true,
    .elsewhere = work_elsewhere,
    .run = run_gc,
};

extern const CommandSpec k_conda_image_command{
    .name = "conda image",
    .summary = "Make the image of an environment's present generation, if it has none, or a damaged one",
    .description =
        "An image is one file with all of a generation, beside it on the share, about a third of its size: `sharefs "
        "conda stage` brings it to a node in seconds, where a copy of its files takes minutes. `conda share` and "
        "`conda update` make one (`conda.image`); this makes it for a generation that is older, or where there was no "
        "room. Made by mksquashfs of squashfs-tools.",
    .example = "sharefs conda image llm_train",
    .changes = true,
    .positional = k_environment,
    .elsewhere = change_store_as_owner,
    .run = run_image,
};

} // namespace sharefs::cli
