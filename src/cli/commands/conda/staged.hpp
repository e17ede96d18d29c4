#pragma once
// Staged images of this host, for the commands that mount and unmount what sharefs.yaml says, and for those that look.
#include "cli/context.hpp"
#include "conda/staged_images.hpp"

namespace sharefs::cli {

/// Of all that `conda.stage` names; none without a section `conda:`, or below another root.
std::vector<conda::StagedImage> staged_images(Context& context, const config::Config* config);
/// Of these, what is mounted over directories of shares.
std::set<std::string> staged_binds(const std::vector<conda::StagedImage>& images);
/// The copies that can be mounted over directories of shares now (`stage.paths`): images and shares are mounted.
plan::Plan plan_copies_over_shares(Context& context, const config::Config& config);
/// The same as a further plan. An exit code other than 0 ends the command.
Result<int> mount_copies_over_shares(Context& context, const config::Config& config);
/// And with images that lie on shares (`conda.image_from_share`).
Result<int> mount_on_shares(Context& context);
/// The unit that mounts them at boot, written and enabled where systemd runs, or (not `wanted`) taken away. Why it is
/// not written is said as a note.
void plan_staged_unit(Context& context, bool wanted, plan::Plan& plan);

} // namespace sharefs::cli
