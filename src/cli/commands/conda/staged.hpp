#pragma once
// Staged images of this host, for the commands that mount and unmount what sharefs.yaml says, and for those that look.
#include "cli/context.hpp"
#include "conda/staged_images.hpp"

namespace sharefs::cli {

/// Of all that `conda.stage` names; none without a section `conda:`, or below another root.
std::vector<conda::StagedImage> staged_images(Context& context, const config::Config* config);
/// The unit that mounts them at boot, written and enabled where systemd runs, or (not `wanted`) taken away. Why it is
/// not written is said as a note.
void plan_staged_unit(Context& context, const config::Config& config, bool wanted, plan::Plan& plan);

} // namespace sharefs::cli
