#include "cli/commands/conda/staged.hpp"

#include "base/path.hpp"
#include "cli/commands/stage/stage.hpp"
#include "mounts/boot.hpp"
#include "mounts/boot_text.hpp"

#include <fmt/format.h>

namespace sharefs::cli {

namespace {

constexpr const char* k_unit_directory = "/etc/systemd/system";
constexpr const char* k_unit_links = "/etc/systemd/system/multi-user.target.wants";
constexpr const char* k_boot_group = "at boot"; // in order with what the mounts room writes there
constexpr const char* k_default_config = "/etc/sharefs/sharefs.yaml";
constexpr std::size_t k_largest_unit = 64U << 10U;

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
    if (image.is_mounted && image.mount.fs_type == sys::k_bind)
      targets.insert(image.mount.target);
  return targets;
}

void plan_staged_unit(Context& context, const config::Config& config, bool wanted, plan::Plan& plan) {
  const auto path = join_path(k_unit_directory, conda::k_staged_unit);
  const auto link = join_path(k_unit_links, conda::k_staged_unit);
  auto entries = context.system.entries(
      {.queries = {{.path = path, .read_bytes = k_largest_unit}, {.path = link}, {.path = k_unit_links}}});
  const auto& file = entries[0];
  const bool ours = file.kind == sys::EntryKind::file && file.content.starts_with(mounts::k_unit_mark);
  if (!wanted) {
    if (entries[1].kind == sys::EntryKind::symlink && ours)
      plan.add(k_boot_group, "no longer started at boot", plan::remove_link(link, entries[1].link_target));
    if (ours)
      plan.add(k_boot_group, "it mounts staged images at boot", plan::remove_file(path, file.content));
    return;
  }
  const auto host = mounts::boot_host(context.system);
  if (!host.systemd || (file.exists() && !ours))
    return;
  if (!host.unfit.empty()) {
    plan.notes.push_back("staged images are not mounted at boot: " + host.unfit);
    return;
  }
  Argv program{host.program};
  if (const auto from = context.config_path(); from != k_default_config)
    program.insert(program.end(), {"--config", from});
  const auto text = conda::staged_unit_text(program, stage_directories(config));
  if (!ours || file.content != text)
    plan.add(k_boot_group, "staged images are mounted at boot",
             plan::File{path, ours ? std::optional(file.content) : std::nullopt, text});
  if (entries[1].exists())
    return;
  if (!entries[2].exists())
    plan.add(k_boot_group, "units that are started at boot", plan::make_directory(k_unit_links));
  plan.add(k_boot_group, "started at boot", plan::make_link(link, path));
}

} // namespace sharefs::cli
