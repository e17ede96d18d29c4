// sharefs conda stage ENV: copies the present generation to this host's own disk.
#include "cli/commands/stage/stage.hpp"
#include "base/try.hpp"
#include "cli/commands/conda/staged.hpp"
#include "cli/commands/conda/support.hpp"
#include "cli/execute.hpp"
#include "conda/staging.hpp"
#include "mounts/boot.hpp"
#include "mounts/boot_text.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>

namespace sharefs::cli {

namespace {

/// Returns the user who reads the store for root if its server refuses root; nullopt: root reads it itself.
Result<std::optional<sys::User>> find_reader(Context& context, const conda::StagingRequest& request) {
  if (context.flags.root != "/" || context.system.identity().uid != 0)
    return std::nullopt;
  auto seen = see_store(context, request.store, true);
  if (!seen && request.removes) // its copies are on this host, so the store is not needed
    return std::nullopt;
  return seen ? Result<std::optional<sys::User>>(std::move(seen->by)) : fail(seen.error());
}

Result<conda::StagingRequest> staging_request(Context& context, const Arguments& arguments, const std::string& word) {
  TRY_ASSIGN(const auto where, store_name(context, word));
  const auto settings = (*context.config())->conda->settings_of(where.name);
  conda::StagingRequest request;
  request.store = where.store;
  request.name = where.name;
  request.stage = settings.stage;
  request.by_image = settings.image;
  request.removes = arguments.flag("remove");
  TRY_ASSIGN(request.how, copying_by(context, arguments));
  request.how.copying.anew = fmt::format("`sharefs conda image {}` makes it anew", shell_quote(where.name));
  if (!request.removes)
    TRY(check_share(context, request.store));
  TRY_ASSIGN(request.how.copying.reader, find_reader(context, request));
  return request;
}

} // namespace

std::vector<conda::StagedImage> staged_images(Context& context, const config::Config* config) {
  if (config == nullptr || context.flags.root != "/")
    return {};
  return conda::find_staged_images(context.system, stage_directories(*config),
                                   config->stage ? config->stage->paths : std::vector<std::string>{});
}

std::set<std::string> staged_binds(const std::vector<conda::StagedImage>& images) {
  std::set<std::string> targets;
  for (const auto& image : images)
    if (image.is_mounted && image.is_bind())
      targets.insert(image.mount.target);
  return targets;
}

void plan_staged_unit(Context& context, bool wanted, plan::Plan& plan) {
  const auto facts = mounts::read_boot_facts(context.system);
  mounts::BootUnit unit{.name = conda::k_staged_unit,
                        .text = "",
                        .why = "staged images are mounted at boot",
                        .why_not = "it mounts staged images at boot"};
  if (wanted) {
    const auto host = mounts::read_boot_host(context.system);
    const auto there = facts.units.find(unit.name);
    if (!host.systemd || (there != facts.units.end() && !there->second.starts_with(mounts::k_unit_mark)))
      return;
    if (!host.unfit.empty()) {
      plan.notes.push_back("staged images are not mounted at boot: " + host.unfit);
      return;
    }
    Argv program{host.program};
    if (const auto from = context.config_path(); from != k_default_config)
      program.insert(program.end(), {"--config", from});
    unit.text = conda::staged_unit_text(program, stage_directories(**context.config()));
  }
  plan.add(mounts::plan_units(facts, false, {unit}));
}

Result<plan::HostLock> lock_staging(Context& context) {
  TRY_ASSIGN(const auto state, state_directory(context));
  return take_lock(context, state, context.flags.wait, "stage");
}

Result<conda::CopySettings> copying_by(Context& context, const Arguments& arguments) {
  TRY_ASSIGN(const auto limit, limit_of(arguments));
  TRY_ASSIGN(auto upstreams, upstreams_of(context, arguments));
  return conda::CopySettings{.copying = {.bytes_per_second = limit, .wait = context.flags.wait},
                             .upstreams = std::move(upstreams),
                             .fetched = note_of_fetched(context),
                             .lock = [&context] { return lock_staging(context); }};
}

Result<int> stage_environment(Context& context, const Arguments& arguments, const std::string& word) {
  TRY_ASSIGN(auto request, staging_request(context, arguments, word));
  const auto say = say_to(context);
  report_reader(context, request.store, request.how.copying.reader);
  conda::Staging staging;
  const auto propose = [&]() -> Result<Proposal> {
    TRY_ASSIGN(staging, conda::plan_staging(context.system, request, say));
    Proposal proposal{staging.made.plan, staging.nothing};
    if (staging.made.by_image && context.system.identity().uid == 0)
      plan_staged_unit(context, true, proposal.plan);
    proposal.takes_long = staging.made.copies;
    proposal.before_groups = [&] { return conda::copy_staged(context.system, request, staging, say); };
    return proposal;
  };
  return execute(context, propose).map(&Executed::exit_code);
}

namespace {

/// Stages one environment of `sharefs conda stage --all`, as a command of its own, so that its plan is a document of
/// its own.
Result<int> stage_one_of_all(Context& context, const Arguments& arguments, const std::string& name) {
  Argv argv = context.argv;
  std::ranges::replace(argv, std::string("--all"), name);
  Context own(context.host, context.system, context.console, context.flags, argv);
  return stage_environment(own, arguments, name);
}

/// Returns the names in `conda.envs`; if it has none, all environments of the store.
Result<std::vector<std::string>> all_names(Context& context) {
  TRY_ASSIGN(const auto section, conda_section(context));
  if (auto names = section->names(); !names.empty())
    return names;
  return shared_names(context);
}

Result<int> mount_all_staged(Context& context) {
  TRY_ASSIGN(const auto config, context.config());
  TRY(require_root(context, "only root can mount staged images"));
  Diagnoses damaged;
  const auto propose = [&]() -> Result<Proposal> {
    auto images = staged_images(context, config);
    const bool none = images.empty();
    damaged = conda::take_out_damaged(context.system, images, say_to(context));
    return Proposal{conda::mount_staged(images), none              ? "no image is staged here"
                                                 : damaged.empty() ? "all staged images are mounted"
                                                                   : "no other image is to be mounted"};
  };
  const auto executed = execute(context, propose);
  context.report(damaged);
  if (!executed || executed->exit_code != k_exit_ok || executed->stopped())
    return executed.map(&Executed::exit_code);
  auto copies = mount_on_shares(context, *config, false);
  if (!copies || *copies != k_exit_ok || damaged.empty())
    return copies;
  return executed->applied() ? k_exit_partly : k_exit_failed;
}

/// Adds the plan for one image to the proposal. The work before the steps is done for one image after the other.
Result<void> add_image_from_share(Context& context, const std::string& name, Proposal& proposal) {
  TRY_ASSIGN(auto request, staging_request(context, {}, name));
  request.from_share = true;
  const auto say = say_to(context);
  TRY_ASSIGN(auto staging, conda::plan_staging(context.system, request, say));
  const auto& plan = staging.made.plan;
  if (plan.empty() && !staging.nothing.empty() && staging.nothing == staging.why_files)
    context.console.message(fmt::format("{}: its image on the share is not mounted: {}", name, staging.nothing));
  if (plan.empty())
    return {};
  proposal.plan.add(plan);
  proposal.before_groups = [&context, say, before = proposal.before_groups, request = std::move(request),
                            staging = std::move(staging)]() -> Result<void> {
    TRY(before ? before() : Result<void>{});
    return conda::copy_staged(context.system, request, staging, say);
  };
  return {};
}

Result<int> run_stage(Context& context, const Arguments& arguments) {
  const bool named = !arguments.positional.empty(), all = arguments.flag("all"), again = arguments.flag("mount");
  if (named + all + again != 1)
    return fail(ErrorCode::usage, "name an environment, or give --all or --mount: one of the three");
  if (again)
    return mount_all_staged(context);
  if (named)
    return stage_environment(context, arguments, arguments.positional.front());
  TRY_ASSIGN(const auto names, all_names(context));
  return for_each_environment(context, names,
                              [&](const std::string& name) { return stage_one_of_all(context, arguments, name); });
}

} // namespace

std::vector<std::string> unstaged_environments(Context& context) {
  const auto section = conda_section(context);
  const auto names = section ? all_names(context) : fail(section.error());
  if (!names || !check_share(context, (*section)->store))
    return {};
  std::map<std::string, std::string> environments;
  for (const auto& name : *names)
    environments.emplace(name, (*section)->settings_of(name).stage);
  return conda::find_unstaged(context.system, (*section)->store, environments, readers(context));
}

Result<int> mount_on_shares(Context& context, const config::Config& config, bool images) {
  const auto& section = config.conda;
  const bool from_share = images && section && section->image_from_share && check_share(context, section->store);
  std::set<std::string> said;
  const auto propose = [&]() -> Result<Proposal> {
    auto staged = staged_images(context, &config);
    const auto table = context.system.mounts();
    std::erase_if(staged, [&](const conda::StagedImage& one) {
      return !one.is_bind() || !table || !conda::is_missing(one, *table);
    });
    context.report(conda::take_out_gone(context.system, staged));
    Proposal proposal{conda::mount_staged(staged, true), ""};
    const auto names = from_share ? all_names(context) : Result<std::vector<std::string>>(std::vector<std::string>{});
    if (!names && said.insert("").second)
      context.console.warning(names.error().message, names.error().hint);
    for (const auto& name : names ? *names : std::vector<std::string>{})
      if (auto added = add_image_from_share(context, name, proposal); !added && said.insert(name).second)
        context.console.warning(fmt::format("{}: {}", name, added.error().message), added.error().hint);
    return proposal;
  };
  return execute_further(context, propose).map(&Executed::exit_code);
}

extern const CommandSpec k_conda_stage_command{
    .name = "conda stage",
    .summary = "Copy an environment's present generation to this host's own disk",
    .description =
        "Python then starts as fast as from a local disk: `sharefs conda run` takes the copy below `conda.stage` when "
        "it is whole, of the present generation, and made by root or by the user who runs the command; otherwise the "
        "generation on the share. Root copies the image of the generation, which is one file, and mounts it read-only; "
        "a user does so by squashfuse where that is installed. Where there is none, or it cannot be mounted, files are "
        "copied, all of each generation. Older copies go when no command works with them. A copy that was cut off goes "
        "on when it is run again. Images are mounted again at boot where systemd runs, and by `mount --all` and `up`.",
    .example = "sharefs conda stage llm_train\n"
               "sharefs conda stage --all --yes   # in a prolog: nothing is done where all is there\n"
               "sharefs conda stage llm_train --remove",
    .changes = true,
    .positional = {.name = "ENV", .help = "a name in the store (`conda.store`)", .max = 1},
    .options = {k_limit_option,
                {.names = "--all", .help = "those of `conda.envs`, or all of the store where it names none"},
                {.names = "--mount", .help = "mount what is staged and not mounted, as after a boot; asks no share"},
                {.names = "--remove", .help = "remove the copies of this environment"},
                k_upstreams_option},
    .on_nodes = true,
    .before_nodes = [](Context& /*context*/, const Arguments& arguments, fleet::Request& job) -> Result<void> {
      if (!arguments.flag("remove") && !arguments.flag("mount"))
        assign_upstreams(job);
      return {};
    },
    .run = run_stage,
};

} // namespace sharefs::cli
