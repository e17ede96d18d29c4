// sharefs conda run ENV -- CMD: the command in the present generation of an environment, then exec.
#include "base/path.hpp"
#include "base/text.hpp"
#include "cli/commands/conda_names.hpp"
#include "cli/commands/conda_pin.hpp"
#include "cli/commands/conda_support.hpp"
#include "cli/exit_code.hpp"
#include "conda/staged.hpp"
#include "sys/leases/lease.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <ostream>

namespace sharefs::cli {

namespace {

constexpr std::chrono::seconds k_scripts_deadline{60};
constexpr std::size_t k_largest_environment = 8U << 20U;
/// A server that is started anew answers after its grace time (90 s, nfsd(7)); the program itself would wait for it.
constexpr std::chrono::seconds k_longest_wait{120};

/// Where the look has found no place for the note, and for notes of this host whose processes have ended: no other host
/// knows that. What happens to the generation's list of users does not matter to the command.
void keep_notes(Context& context, const std::string& host, const sys::Note& note, const conda::RunningPlace& place) {
  const auto& generation = *place.generation;
  const auto& files = context.system.files();
  const auto ended = conda::stale_uses(context.system, host, place.uses);
  if (place.noted && ended.empty())
    return;
  const auto directory = join_path(conda::generations_path(generation.store, generation.name), "uses");
  const auto ours = note.name + "." + conda::generation_name(generation.number);
  auto noted = files.exchange_notes(directory, ours, ended);
  if (!noted && noted.error().code == ErrorCode::not_found) {
    const auto above = context.system.entry({.path = parent_path(directory), .follow = true});
    if (files.make_directories(directory, conda::uses_mode(above.mode)))
      noted = files.exchange_notes(directory, ours, ended);
  }
  if (!noted && context.flags.verbose)
    context.console.message("sharefs: this use is not noted, `conda gc` does not see it: " + noted.error().message);
}

/// What pip has installed below the home comes before the environment's own packages (PEP 370).
void note_user_site(Context& context, const conda::RunningPlace& place) {
  const auto home = context.environment("HOME").value_or("");
  if (!context.flags.verbose || place.python.empty() || !home.starts_with('/') ||
      !context.environment("PYTHONNOUSERSITE").value_or("").empty())
    return;
  const auto site = fmt::format("{}/.local/lib/{}/site-packages", home, place.python);
  if (const auto entry = context.system.entry({.path = site, .follow = true, .list = true}); !entry.names.empty())
    context.console.message(
        fmt::format("sharefs: Python takes packages from {} first (PYTHONNOUSERSITE=1 ends that)", to_utf8(site)));
}

Result<std::vector<std::string>> with_scripts(Context& context, const conda::RunningPlace& place,
                                              std::vector<std::string> environment) {
  if (place.scripts.empty())
    return environment;
  sys::Command command;
  command.argv = conda::scripts_command(place.scripts);
  command.deadline = k_scripts_deadline;
  command.output_limit = k_largest_environment;
  for (const auto& entry : environment)
    if (const auto equals = entry.find('='); equals != std::string::npos)
      command.environment[entry.substr(0, equals)] = entry.substr(equals + 1);
  const auto done = context.system.run(command);
  if (!done)
    return fail(done.error());
  if (!done->err.empty() && !context.flags.quiet)
    context.host.err << done->err;
  const auto where = join_path(place.prefix, "etc/conda/activate.d");
  if (done->timed_out)
    return fail(ErrorCode::timeout,
                fmt::format("{}: the scripts have not ended after {} s", where, k_scripts_deadline.count()));
  if (!done->ok() || done->out.empty())
    return fail(ErrorCode::failed,
                fmt::format("{}: a script has ended the shell (exit code {})", where, done->exit_code));
  return conda::after_scripts(std::move(environment), done->out);
}

/// The copy on this host's own disk, if there is one of this generation; it may go meanwhile.
void take_staged(Context& context, const sys::Identity& self, conda::RunningPlace& place) {
  const auto config = context.config_if_any();
  if (!config || *config == nullptr || !(*config)->conda)
    return;
  const auto path = conda::find_staged(context.system, (*config)->conda->settings_of(place.generation->name).stage,
                                       static_cast<unsigned>(self.uid), *place.generation);
  auto staged = path ? conda::probe_running(context.system, *path) : Result<conda::RunningPlace>(place);
  if (!path || !staged)
    return;
  staged->generation = std::move(place.generation);
  place = std::move(*staged);
  if (context.flags.verbose)
    context.console.message("sharefs: the staged copy " + place.prefix + " is used");
}

/// By conda's rule (activate.py): environments below `envs` have a name, others are named by their path.
std::string default_name(const std::string& word, const std::string& path, const conda::RunningPlace& place) {
  if (place.generation)
    return place.generation->name;
  return word.find('/') == std::string::npos || base_name(parent_path(path)) == "envs" ? base_name(path) : path;
}

Result<int> run_in_environment(Context& context, const Arguments& arguments) {
  const auto& word = arguments.positional.front();
  const auto path = environment_path(context, word);
  if (!path)
    return fail(path.error());
  if (auto mounted = check_share(context, *path); !mounted)
    return fail(mounted.error());
  const auto self = context.system.identity();
  std::optional<sys::Note> note;
  if (const auto start = sys::process_start(context.system, self.pid))
    note = conda::use_note(self.hostname, self.pid, *start);
  // Noted before anything takes its time: `gc` and `stage` leave what is in use.
  auto place = conda::probe_running(context.system, *path, note);
  if (!place && place.error().code == ErrorCode::timeout) {
    context.console.message(
        fmt::format("sharefs: {}; waiting for up to {} s more", place.error().message, k_longest_wait.count()));
    place = conda::probe_running(context.system, *path, note, k_longest_wait);
  }
  if (!place && place.error().code == ErrorCode::timeout) // to look closer would take as long again
    return fail(place.error());
  if (!place) {
    const auto there = context.system.entry({.path = *path, .follow = true});
    if (auto mounted = check_share(context, there.resolved); !mounted) // a link into it
      return fail(mounted.error());
    const auto link = context.system.entry({.path = *path});
    if (there.kind == sys::EntryKind::missing && link.kind == sys::EntryKind::symlink)
      return fail(ErrorCode::not_found, fmt::format("{} leads to `{}`, which is not there", *path, link.link_target),
                  "`sharefs conda list` says what is there");
    if (there.kind != sys::EntryKind::missing || word.find('/') != std::string::npos)
      return fail(place.error());
    const auto store = context.system.entry({.path = parent_path(*path), .follow = true, .list = true});
    auto hint = did_you_mean_hint(word, store.names);
    return fail(ErrorCode::not_found, fmt::format("environment `{}` is not in the store {}", word, store.path),
                hint.empty() ? place.error().hint : std::move(hint));
  }
  if (place->generation) {
    if (note)
      keep_notes(context, self.hostname, *note, *place);
    take_staged(context, self, *place);
  }
  context.report(place->found);
  auto environment = conda::activated(context.host.environment, *place, default_name(word, *path, *place));
  if (place->generation)
    set_pin(environment, *place->generation);
  auto scripted = with_scripts(context, *place, std::move(environment));
  if (!scripted)
    return fail(scripted.error());
  note_user_site(context, *place);
  const auto argv = pinned_command(context, *arguments.rest, *scripted);
  context.host.out.flush();
  context.host.err.flush();
  const Error error = context.system.exec(argv, *scripted);
  context.console.error(error);
  return error.code == ErrorCode::not_found    ? k_exit_not_found
         : error.code == ErrorCode::permission ? k_exit_not_executable
                                               : k_exit_run_failed;
}

} // namespace

extern const CommandSpec k_conda_run_command{
    .name = "conda run",
    .summary = "Run a command in an environment, in its present generation",
    .description =
        "Becomes the command, with the environment that `conda activate ENV` would set (variables, activate.d "
        "scripts). "
        "Of a shared environment the command gets the generation that is the present one now, and keeps it: what is "
        "imported later comes from there, too, while others update the environment. Scripts whose first line names the "
        "environment's Python are run by that generation's. It goes with `sharefs run` in both orders.",
    .example = "sharefs conda run llm_train -- python train.py\n"
               "sharefs run -- sharefs conda run llm_train -- torchrun train.py --cache_dir /data/share/cache\n"
               "sharefs conda run ~/miniconda3/envs/mine python -V",
    .effect = Effect::reads,
    .positional = {.name = "ENV", .help = "a name in the store (`conda.store`), or a path", .min = 1, .max = 1},
    .takes_command = true,
    .elsewhere = read_as_whoever_may,
    .run = run_in_environment,
};

} // namespace sharefs::cli
