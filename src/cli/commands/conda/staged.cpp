#include "cli/commands/conda/staged.hpp"

#include "cli/commands/stage/stage.hpp"
#include "cli/execute.hpp"
#include "mounts/boot.hpp"
#include "mounts/boot_text.hpp"

namespace sharefs::cli {

namespace {

constexpr const char* k_default_config = "/etc/sharefs/sharefs.yaml";

} // namespace

std::vector<conda::StagedImage> staged_images(Context& context, const config::Config* config) {
  if (config == nullptr || context.flags.root != "/")
    return {};
  return conda::find_staged_images(context.system, stage_directories(*config),
                                   config->stage ? config->stage->paths : std::vector<std::string>{});
}

plan::Plan plan_copies_over_shares(Context& context, const config::Config& config) {
  auto staged = staged_images(context, &config);
  const auto table = context.system.mounts();
  std::erase_if(staged, [&](const conda::StagedImage& one) {
    return one.mount.fs_type != sys::k_bind || !table || !conda::is_missing(one, *table);
  });
  context.report(conda::take_out_gone(context.system, staged));
  return conda::mount_staged(staged, true);
}

Result<int> mount_copies_over_shares(Context& context, const config::Config& config) {
  const auto propose = [&]() -> Result<Proposal> { return Proposal{plan_copies_over_shares(context, config), ""}; };
  return execute_further(context, propose).map(&Executed::exit_code);
}

std::set<std::string> staged_binds(const std::vector<conda::StagedImage>& images) {
  std::set<std::string> targets;
  for (const auto& image : images)
    if (image.is_mounted && image.mount.fs_type == sys::k_bind)
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

} // namespace sharefs::cli
