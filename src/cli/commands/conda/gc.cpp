// sharefs conda gc: generations that nobody needs any more.
#include "base/number.hpp"
#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "cli/commands/conda/support.hpp"
#include "conda/collect.hpp"
#include "exports/host.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>

namespace sharefs::cli {

namespace {

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
  auto programs = conda::running_programs(context.system);
  std::ranges::move(programs_in(context.environment(k_programs).value_or("")), std::back_inserter(programs));
  auto names = arguments.positional;
  if (names.empty()) {
    TRY_ASSIGN(names, shared_names(context));
  }
  if (names.size() == 1)
    return collect(context, arguments, names.front(), programs);
  return for_each_environment(context, names,
                              [&](const std::string& name) { return collect(context, arguments, name, programs); });
}

} // namespace

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

} // namespace sharefs::cli
