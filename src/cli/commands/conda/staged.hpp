#pragma once
// Staged images of this host, for the commands that mount and unmount the mounts of sharefs.yaml, and for those that
// only read.
#include "cli/context.hpp"
#include "conda/staged_images.hpp"

namespace sharefs::cli {

/// Returns the images of all stage directories of sharefs.yaml; none without sharefs.yaml, or with --root.
std::vector<conda::StagedImage> staged_images(Context& context, const config::Config* config);
/// Returns the mount points among them at which a staged copy is mounted over a directory of a share.
std::set<std::string> staged_binds(const std::vector<conda::StagedImage>& images);
/// Plans the mounts of staged copies over directories of shares (`stage.paths`) for which image and share are mounted
/// now.
plan::Plan plan_copies_over_shares(Context& context, const config::Config& config);
/// Executes that as a further plan. An exit code other than 0 ends the command.
Result<int> mount_copies_over_shares(Context& context, const config::Config& config);
/// The same, and also mounts images that lie on shares (`conda.image_from_share`).
Result<int> mount_on_shares(Context& context);
/// Plans the unit that mounts staged images at boot: written and enabled where systemd runs, or removed if it is not
/// `wanted`. If it cannot be written a note of the plan says why.
void plan_staged_unit(Context& context, bool wanted, plan::Plan& plan);

} // namespace sharefs::cli
