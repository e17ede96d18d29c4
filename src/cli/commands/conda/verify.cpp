// sharefs conda verify, sharefs conda relocate: compare an environment with conda's records, and repair it.
#include "base/json_fields.hpp"
#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "cli/commands/conda/support.hpp"
#include "cli/execute.hpp"
#include "conda/environment_reader.hpp"
#include "conda/repair.hpp"
#include "conda/verified.hpp"
#include "sys/process/interrupt.hpp"

#include <fmt/format.h>

namespace sharefs::cli {

namespace {

Result<conda::EnvironmentRequest> environment_request(Context& context, const Arguments& arguments) {
  conda::EnvironmentRequest request;
  TRY_ASSIGN(request.path, environment_path(context, arguments.positional.front()));
  for (const auto& from : arguments.list("from")) {
    TRY(conda::check_prefix(from));
    request.from.push_back(from);
  }
  return request;
}

Result<conda::EnvironmentState> read_environment(Context& context, const conda::EnvironmentRequest& request) {
  return conda::probe(context.system, request, say_to(context).progress("reading " + request.path));
}

Json environment_json(const conda::EnvironmentState& state) {
  auto prefixes = Json::array();
  for (const auto& use : state.prefixes) {
    constexpr std::array<const char*, 3> k_leads{"here", "nowhere", "environment"};
    prefixes.push_back({{"prefix", to_utf8(use.prefix)},
                        {"files", use.files},
                        {"leads", name_in(k_leads, use.leads)},
                        {"right", use.prefix == state.decision.right}});
  }
  return {{"path", to_utf8(state.path)},     {"prefix", to_utf8(state.decision.right)},
          {"packages", state.packages},      {"files", state.files},
          {"managed", state.managed},        {"bytes", state.bytes},
          {"prefixes", std::move(prefixes)}, {"found", json_of(state.found)}};
}

std::string environment_summary(const conda::EnvironmentState& state) {
  const auto found = conda::diagnose(state);
  return fmt::format("{}: {}, {} of {} of conda, {}: {}, {}", state.path, count_of(state.packages, "package"),
                     state.managed, count_of(state.files, "file"), format_bytes(state.bytes),
                     count_of(count(found, Severity::error), "error"),
                     count_of(count(found, Severity::warning), "warning"));
}

/// Returns the generation that the directory at `path` is, also over links; nullopt if it is none, or does not answer.
std::optional<conda::GenerationPath> generation_at(Context& context, const std::string& path) {
  auto found = conda::in_generation(context.system.entry({.path = path, .follow = true}).resolved);
  return found && found->rest.empty() ? found : std::nullopt;
}

/// Verifies the images of a generation by one hash each; returns true if all are good.
bool verify_images(Context& context, const conda::KnownGeneration& known) {
  const auto stage = stage_of(context, known.environment.name);
  const auto checked = conda::check_images(context.system, known, stage, say_to(context));
  for (const auto& path : checked.good)
    context.console.message(path + ": as it was made");
  context.envelope.fields["images"] = checked.good;
  context.report(checked.found);
  return checked.found.empty();
}

/// Reports that the files of a generation are unchanged since they were last found good, and checks the rest of it.
int verify_by_last_time(Context& context, const conda::KnownGeneration& known) {
  const auto path = known.environment.path(known.record.number);
  context.console.message(
      fmt::format("{}: {} unchanged in size, time and inode since they were found good on {}; `--files` "
                  "reads them again",
                  path, count_of(known.record.files, "file"), format_time(known.noted.at)));
  context.report(conda::diagnose_above(context.system, path));
  return verify_images(context, known) ? k_exit_ok : k_exit_failed;
}

Result<Executed> repair_generation(Context& context, const StoreName& where, const conda::EnvironmentState& seen) {
  TRY_ASSIGN(auto environment, conda::find_shared(context.system, where.store, where.name));
  const conda::RepairRequest request{
      .environment = std::move(environment), .seen = seen, .settings = generation_settings(context, where.name, false)};
  const auto hidden = conda::hidden_name(request.environment.next());
  Proposal proposal{conda::plan_repaired_generation(request, hidden), "there is nothing that can be repaired"};
  proposal.takes_long = true;
  return execute_switch(context, std::move(proposal), [&] {
    return conda::make_repaired_generation(context.system, request, hidden, say_to(context));
  });
}

Result<int> run_verify(Context& context, const Arguments& arguments) {
  const bool repair = arguments.flag("repair");
  if (!repair && (context.flags.changes_nothing() || !arguments.list("from").empty()))
    return fail(ErrorCode::usage, "`--dry-run`, `--check` and `--from` have no meaning without `--repair`",
                "`conda verify` alone changes nothing");
  TRY_ASSIGN(auto request, environment_request(context, arguments));
  std::optional<StoreName> shared;
  const auto generation = generation_at(context, request.path);
  if (repair && generation) {
    TRY_ASSIGN(auto where, store_name(context, arguments.positional.front()));
    if (const auto done = work_as_owner(context, where.store))
      return *done;
    request.prefix = join_path(where.store, where.name);
    shared = std::move(where);
  }
  sys::install_interrupt_handlers();
  const auto known =
      generation && !repair ? conda::find_known(context.system, *generation, say_to(context)) : std::nullopt;
  if (known && known->is_unchanged() && !arguments.flag("files"))
    return verify_by_last_time(context, *known);
  TRY_ASSIGN(const auto state, read_environment(context, request));
  const auto diagnoses = conda::diagnose(state);
  context.envelope.fields["environment"] = environment_json(state);
  context.report(diagnoses);
  context.console.message(environment_summary(state));
  if (known)
    conda::note_verified(context.system, known->environment, known->record, !has_errors(diagnoses), known->fingerprint);
  const bool images_good = !known || verify_images(context, *known);
  if (!repair)
    return has_errors(diagnoses) || !images_good ? k_exit_failed : k_exit_ok;
  TRY_ASSIGN(const auto executed, shared ? repair_generation(context, *shared, state)
                                         : execute(context, conda::plan_repair(state, true, context.flags.root == "/"),
                                                   "there is nothing that can be repaired"));
  if (executed.stopped() || executed.exit_code != k_exit_ok)
    return executed.exit_code;
  const auto left = conda::diagnose_unrepaired(state, shared.has_value());
  return has_errors(left) ? (executed.applied() ? k_exit_partly : k_exit_failed) : k_exit_ok;
}

Result<int> run_relocate(Context& context, const Arguments& arguments) {
  TRY_ASSIGN(auto request, environment_request(context, arguments));
  request.reading = conda::Reading::prefixes;
  if (arguments.positional[1].empty())
    return fail(ErrorCode::usage, "NEW_PREFIX is empty", "it is a path: where the environment is to be run");
  request.prefix = normalize_path(arguments.positional[1], context.host.working_directory);
  TRY(conda::check_relocation(context.system, request));
  sys::install_interrupt_handlers();
  TRY_ASSIGN(const auto state, read_environment(context, request));
  context.envelope.fields["environment"] = environment_json(state);
  const auto found = conda::diagnose_relocation(state);
  context.report(found);
  if (has_errors(found)) {
    context.console.message("nothing was changed");
    return k_exit_failed;
  }
  return execute(context, conda::plan_repair(state, false, context.flags.root == "/"),
                 fmt::format("every file of {} names {} already", state.path, request.prefix))
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
        "read, compiled Python that is not of its source. Without --repair nothing of it is changed; `conda list` "
        "shows when it was found good. Files of a shared environment that are by size, time and inode as they were "
        "then are not read again without --files. Its images, on the share and staged here, are compared by one "
        "checksum each. --repair corrects prefixes, checksums of records, modes and compiled files through a plan, and "
        "where the environment is shared by a new generation. Exits with 1 if there are errors; warnings are allowed.",
    .example = "sharefs conda verify llm_train\n"
               "sharefs conda verify ~/miniconda3/envs/llm_train --json\n"
               "sharefs conda verify llm_train --repair --dry-run",
    .changes = true,
    .positional = {.name = "ENV", .help = "a name in the store (`conda.store`), or a path", .min = 1, .max = 1},
    .options = {{.names = "--repair", .help = "correct what can be corrected without conda"},
                {.names = "--all,--files", .help = "read every file, also those that are as when they were found good"},
                k_from_option},
    .elsewhere =
        [](Context& context, const Arguments& arguments) {
          return arguments.flag("repair") ? change_as_owner(context, arguments)
                                          : read_as_permitted_user(context, arguments);
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
    .changes = true,
    .positional = {.name = "ENV NEW_PREFIX",
                   .help = "where it lies (a name in the store, or a path), and the path that its files should name",
                   .min = 2,
                   .max = 2},
    .options = {k_from_option},
    .elsewhere = change_as_owner,
    .run = run_relocate,
};

} // namespace sharefs::cli
