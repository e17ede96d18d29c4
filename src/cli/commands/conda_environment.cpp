// sharefs conda verify, sharefs conda relocate: an environment against conda's records, and mended.
#include "base/path.hpp"
#include "base/text.hpp"
#include "cli/commands/conda_names.hpp"
#include "cli/commands/conda_repair.hpp"
#include "cli/commands/conda_support.hpp"
#include "cli/execute.hpp"
#include "cli/exit_code.hpp"
#include "sys/process/interrupt.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace sharefs::cli {

namespace {

Result<conda::EnvironmentRequest> environment_request(Context& context, const Arguments& arguments) {
  auto path = environment_path(context, arguments.positional.front());
  if (!path)
    return fail(path.error());
  conda::EnvironmentRequest request;
  request.path = std::move(*path);
  for (const auto& from : arguments.list("from")) {
    if (auto sound = conda::check_prefix(from); !sound)
      return fail(sound.error());
    request.from.push_back(from);
  }
  return request;
}

nlohmann::ordered_json environment_json(const conda::EnvironmentState& state) {
  auto prefixes = nlohmann::ordered_json::array();
  for (const auto& use : state.prefixes) {
    constexpr std::array<const char*, 3> k_leads{"here", "nowhere", "environment"};
    prefixes.push_back({{"prefix", to_utf8(use.prefix)},
                        {"files", use.files},
                        {"leads", name_in(k_leads, use.leads)},
                        {"right", use.prefix == state.decision.right}});
  }
  auto found = nlohmann::ordered_json::array();
  for (const auto& one : state.found)
    found.push_back(
        {{"kind", conda::to_string(one.kind)}, {"path", to_utf8(one.path)}, {"detail", to_utf8(one.detail)}});
  return {{"path", to_utf8(state.path)},     {"prefix", to_utf8(state.decision.right)},
          {"packages", state.packages},      {"files", state.files},
          {"managed", state.managed},        {"bytes", state.bytes},
          {"prefixes", std::move(prefixes)}, {"found", std::move(found)}};
}

std::string environment_summary(const conda::EnvironmentState& state) {
  std::size_t errors = 0, warnings = 0;
  for (const auto& diagnosis : conda::diagnose(state)) {
    errors += diagnosis.severity == Severity::error ? 1 : 0;
    warnings += diagnosis.severity == Severity::warning ? 1 : 0;
  }
  return fmt::format("{}: {}, {} of {} of conda, {}: {}, {}", state.path, count_of(state.packages, "package"),
                     state.managed, count_of(state.files, "file"), format_bytes(state.bytes), count_of(errors, "error"),
                     count_of(warnings, "warning"));
}

bool is_live_root(Context& context) {
  return context.flags.root == "/";
}

void note_verified(Context& context, const conda::GenerationPath& generation, bool good) {
  const auto environment = conda::probe_environment(context.system, generation.store, generation.name);
  const auto* one = environment ? environment->find(generation.number) : nullptr;
  if (one != nullptr && one->record)
    note_verified(context, generation.store, generation.name, *one->record, good);
}

Result<int> run_verify(Context& context, const Arguments& arguments) {
  const bool repair = arguments.flag("repair");
  if (!repair && (context.flags.dry_run || context.flags.check || !arguments.list("from").empty()))
    return fail(ErrorCode::usage, "`--dry-run`, `--check` and `--from` have no meaning without `--repair`",
                "`conda verify` alone changes nothing");
  auto request = environment_request(context, arguments);
  if (!request)
    return fail(request.error());
  std::optional<StoreName> shared;
  const auto generation = generation_at(context, request->path);
  if (repair && generation) {
    auto where = store_name(context, arguments.positional.front());
    if (!where)
      return fail(where.error());
    if (auto done = work_as_owner(context, where->store); !done || *done)
      return done.map([](const auto& code) { return *code; });
    request->prefix = join_path(where->store, where->name);
    shared = std::move(*where);
  }
  sys::install_interrupt_handlers();
  const auto state = read_environment(context, *request);
  if (!state)
    return fail(state.error());
  const auto diagnoses = conda::diagnose(*state);
  context.envelope.fields["environment"] = environment_json(*state);
  context.report(diagnoses);
  context.console.message(environment_summary(*state));
  if (!repair && generation)
    note_verified(context, *generation, !has_errors(diagnoses));
  if (!repair)
    return has_errors(diagnoses) ? k_exit_failed : k_exit_ok;
  const auto executed = shared ? repair_generation(context, *shared, *state,
                                                   shell_join({"sharefs", "conda", "verify", shared->name, "--repair"}))
                               : execute(context, conda::plan_repair(*state, true, is_live_root(context)),
                                         "there is nothing that can be repaired");
  if (!executed)
    return fail(executed.error());
  if (executed->stopped() || executed->exit_code != k_exit_ok)
    return executed->exit_code;
  const auto left = shared ? diagnose_unrepaired_generation(*state) : conda::diagnose_unrepaired(*state);
  return has_errors(left) ? (executed->applied() ? k_exit_partly : k_exit_failed) : k_exit_ok;
}

/// A directory that is moved keeps its device and inode number, whatever its path.
Result<void> check_place(Context& context, const conda::EnvironmentRequest& request) {
  const auto entries = context.system.entries(
      {.queries = {{.path = request.path, .follow = true}, {.path = request.prefix, .follow = true}}});
  for (const auto& entry : entries)
    if (entry.kind == sys::EntryKind::unknown)
      return fail(entry.error());
  if (entries[0].kind != sys::EntryKind::directory)
    return fail(ErrorCode::not_found, "there is no directory " + request.path,
                "ENV is where the environment lies now, or its name in the store");
  if (entries[1].exists() && entries[1].device == entries[0].device && entries[1].inode == entries[0].inode)
    return {};
  if (entries[1].exists())
    return fail(ErrorCode::usage, fmt::format("{} is not {}: something else lies there", request.prefix, request.path));
  return fail(ErrorCode::unsupported,
              fmt::format("the environment does not lie at {} yet, and sharefs does not move it", request.prefix),
              fmt::format("move it (`mv {0} {1}`), then run `sharefs conda relocate {1} {1}`",
                          shell_quote(request.path), shell_quote(request.prefix)));
}

Result<int> run_relocate(Context& context, const Arguments& arguments) {
  auto request = environment_request(context, arguments);
  if (!request)
    return fail(request.error());
  request->reading = conda::Reading::prefixes;
  if (arguments.positional[1].empty())
    return fail(ErrorCode::usage, "NEW_PREFIX is empty", "it is a path: where the environment is to be run");
  request->prefix = normalize_path(arguments.positional[1], context.host.working_directory);
  if (auto sound = conda::check_prefix(request->prefix); !sound)
    return fail(sound.error());
  for (const auto& from : request->from)
    if (is_under(request->prefix, from) && from != request->prefix)
      return fail(ErrorCode::unsupported,
                  fmt::format("{} lies below {}: they cannot be told apart in files", request->prefix, from));
  if (const auto generation = generation_at(context, request->path))
    return fail(
        ErrorCode::unsupported,
        fmt::format("{} is generation {} of the shared environment `{}`, in which nothing changes any more",
                    request->path, generation->number, generation->name),
        request->prefix == join_path(generation->store, generation->name)
            ? fmt::format("`sharefs conda verify {} --repair` makes a generation whose files name {}",
                          shell_quote(request->prefix), request->prefix)
            : fmt::format("for another one there: `cp -a {0}/. {1} && chmod -R u+w {1}`, then `sharefs conda relocate "
                          "{1} {1}`",
                          shell_quote(request->path), shell_quote(request->prefix)));
  if (auto place = check_place(context, *request); !place)
    return fail(place.error());
  sys::install_interrupt_handlers();
  const auto state = read_environment(context, *request);
  if (!state)
    return fail(state.error());
  context.envelope.fields["environment"] = environment_json(*state);
  Diagnoses in_the_way;
  for (auto& diagnosis : conda::diagnose(*state))
    if (diagnosis.code == "SF503" || diagnosis.code == "SF504" || diagnosis.code == "SF505" ||
        diagnosis.code == "SF508" || diagnosis.code == "SF509")
      in_the_way.push_back(std::move(diagnosis));
  context.report(in_the_way);
  if (has_errors(in_the_way)) {
    context.console.message("nothing was changed");
    return k_exit_failed;
  }
  return execute(context, conda::plan_repair(*state, false, is_live_root(context)),
                 fmt::format("every file of {} names {} already", state->path, request->prefix))
      .map(&Executed::exit_code);
}

constexpr OptionSpec k_from_option{.names = "--from",
                                   .value = "PREFIX",
                                   .help = "an old prefix that sharefs does not find by itself, or leaves",
                                   .repeat = true};

} // namespace

extern const CommandSpec k_conda_verify_command{
    .name = "conda verify",
    .summary = "Check an environment file by file, and repair it",
    .description =
        "Compares every file with the records of conda, mamba or rattler by checksum, and finds what breaks an "
        "environment on shared storage: missing and altered files, prefixes of another place, files that others cannot "
        "read, compiled Python that is not of its source. Without --repair nothing of it is changed; `conda "
        "list` shows when it was found good. --repair corrects prefixes, "
        "checksums of records, modes and compiled files through a plan, and where the environment is shared by a new "
        "generation. Exits with 1 if there are errors; warnings are "
        "allowed.",
    .example = "sharefs conda verify llm_train\n"
               "sharefs conda verify ~/miniconda3/envs/llm_train --json\n"
               "sharefs conda verify llm_train --repair --dry-run",
    .effect = Effect::changes,
    .positional = {.name = "ENV", .help = "a name in the store (`conda.store`), or a path", .min = 1, .max = 1},
    .options = {{.names = "--repair", .help = "correct what can be corrected without conda"}, k_from_option},
    .elsewhere =
        [](Context& context, const Arguments& arguments) {
          return arguments.flag("repair") ? change_as_owner(context, arguments)
                                          : read_as_whoever_may(context, arguments);
        },
    .run = run_verify,
};

extern const CommandSpec k_conda_relocate_command{
    .name = "conda relocate",
    .summary = "Make an environment name the place where it lies now",
    .description =
        "Replaces the prefix in all files of an environment that was moved or copied: in text, in binary files, in "
        "scripts and entry points, by conda's own rules, and to a longer path as far as its packages have room. Links "
        "to the package cache are broken, never written through; the records get the new checksums; compiled Python "
        "is deleted and made again. Old prefixes are found by the scripts. `sharefs undo` takes it back.",
    .example = "mv /home/alice/miniconda3/envs/llm /data/share/conda/llm\n"
               "sharefs conda relocate llm /data/share/conda/llm\n"
               "sharefs conda relocate ./llm ./llm --from /old/place/llm --dry-run",
    .effect = Effect::changes,
    .positional = {.name = "ENV NEW_PREFIX",
                   .help = "where it lies (a name in the store, or a path), and the path that its files should name",
                   .min = 2,
                   .max = 2},
    .options = {k_from_option},
    .elsewhere = change_as_owner,
    .run = run_relocate,
};

} // namespace sharefs::cli
