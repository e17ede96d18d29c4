// sharefs conda run ENV -- CMD: runs the command in the present generation of an environment, by exec.
#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "cli/commands/conda/support.hpp"
#include "cli/execute.hpp"
#include "conda/running.hpp"

#include <fmt/format.h>
#include <ostream>

namespace sharefs::cli {

namespace {

/// Returns the name by conda's rule (activate.py): environments below `envs` have a name, others are named by their
/// path.
std::string default_name(const std::string& word, const std::string& path, const conda::RunningPlace& place) {
  if (place.generation)
    return place.generation->name;
  return word.find('/') == std::string::npos || base_name(parent_path(path)) == "envs" ? base_name(path) : path;
}

/// Explains why there is no environment at `path`.
Error explain_missing(Context& context, const std::string& word, const std::string& path, const Error& error) {
  if (error.code == ErrorCode::timeout) // to read the path again would take as long again
    return error;
  const auto there = context.system.entry({.path = path, .follow = true});
  if (auto mounted = check_share(context, there.resolved); !mounted) // the path may be a link into the share
    return mounted.error();
  const auto link = context.system.entry({.path = path});
  if (there.kind == sys::EntryKind::missing && link.kind == sys::EntryKind::symlink)
    return {ErrorCode::not_found, fmt::format("{} leads to `{}`, which is not there", path, link.link_target),
            "`sharefs conda list` says what is there", ""};
  if (there.kind != sys::EntryKind::missing || word.find('/') != std::string::npos)
    return error;
  const auto store = context.system.entry({.path = parent_path(path), .follow = true, .list = true});
  return {ErrorCode::not_found, fmt::format("environment `{}` is not in the store {}", word, store.path),
          did_you_mean_hint(word, store.names, error.hint), ""};
}

/// Advises to stage a generation from which each process reads many files over NFS. The advice is given once to each
/// user for each generation on each host.
void advise_staging(Context& context, const conda::GenerationPath& generation, const std::string& prefix) {
  constexpr std::uint64_t k_many_files = 1000;
  constexpr std::size_t k_longest_path = 8192;
  const auto mounts = context.system.mounts();
  const auto* mount = mounts ? mounts->owner_of(prefix) : nullptr;
  const auto state = state_directory(context);
  if (context.flags.quiet || mount == nullptr || !sys::is_nfs(*mount) || !state)
    return;
  const auto source = conda::generation_path(generation.store, generation.name, generation.number);
  const auto& files = context.system.files();
  const auto said = join_path(*state, "unstaged-" + generation.name);
  const auto before = files.read_if_exists(said, k_longest_path);
  if (!before || *before == source)
    return;
  const auto record = conda::parse_generation(
      context.system.entry({.path = source + ".json", .read_bytes = conda::k_largest_record}).content);
  const bool many = record && record->files > k_many_files;
  if (!many || !files.make_directories(*state, 0700) || !files.write_if(said, *before, source, 0600))
    return; // if it cannot be noted that the advice was given, it would be given each time
  context.console.message(fmt::format("sharefs: each process reads its part of {} files from the share; `sudo sharefs "
                                      "conda stage {}` puts them on this host's own disk (this is said once)",
                                      record->files, shell_quote(generation.name)));
}

Result<int> run_in_environment(Context& context, const Arguments& arguments) {
  const auto& word = arguments.positional.front();
  TRY_ASSIGN(const auto path, environment_path(context, word));
  TRY(check_share(context, path));
  const auto stage = [&](const std::string& name) { return stage_of(context, name); };
  auto place = conda::find_running(context.system, path, stage, say_to(context));
  if (!place)
    return fail(explain_missing(context, word, path, place.error()));
  if (place->generation && conda::in_generation(place->prefix) && !stage_of(context, place->generation->name).empty())
    advise_staging(context, *place->generation, place->prefix);
  else if (place->generation && !conda::in_generation(place->prefix) && context.flags.verbose)
    context.console.message("sharefs: the staged copy " + place->prefix + " is used");
  context.report(place->found);
  auto environment = conda::activate(context.host.environment, *place, default_name(word, path, *place));
  if (place->generation)
    conda::set_generation(environment, *place->generation);
  std::string said;
  auto scripted = conda::run_scripts(context.system, *place, std::move(environment), said);
  if (!context.flags.quiet)
    context.host.err << said;
  if (!scripted)
    return fail(scripted.error());
  const auto argv = conda::pin_command(context.system, *arguments.rest, *scripted, context.host.working_directory);
  return exec_command(context, argv, *scripted);
}

} // namespace

extern const CommandSpec k_conda_run_command{
    .name = "conda run",
    .summary = "Run a command in an environment, in its present generation",
    .description =
        "Becomes the command, with the environment that `conda activate ENV` would set (variables, activate.d "
        "scripts). Of a shared environment the command gets the generation that is the present one now, and keeps it: "
        "what is imported later comes from there, too, while others update the environment. Scripts whose first line "
        "names the environment's Python are run by that generation's. It goes with `sharefs run` in both orders.",
    .example = "sharefs conda run llm_train -- python train.py\n"
               "sharefs run -- sharefs conda run llm_train -- torchrun train.py --cache_dir /data/share/cache\n"
               "sharefs conda run ~/miniconda3/envs/mine python -V",
    .positional = {.name = "ENV", .help = "a name in the store (`conda.store`), or a path", .min = 1, .max = 1},
    .takes_command = true,
    .elsewhere = read_as_permitted_user,
    .run = run_in_environment,
};

} // namespace sharefs::cli
