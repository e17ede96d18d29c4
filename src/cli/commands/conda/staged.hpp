#pragma once
// Staging on this host's own disk, and the staged images for the commands that mount and unmount the mounts of
// sharefs.yaml, and for those that only read.
#include "cli/context.hpp"
#include "conda/staged_images.hpp"
#include "conda/staging.hpp"

namespace sharefs::cli {

/// Takes the lock that allows one staging at a time on this host, for each user.
Result<plan::HostLock> lock_staging(Context& context);
/// Returns the settings of a copy from --limit and the other options, without the user who reads the share.
Result<conda::CopySettings> copying_by(Context& context, const Arguments& arguments);
/// Stages an environment of the store, or removes its copies, by the flags and options of `conda stage`.
Result<int> stage_environment(Context& context, const Arguments& arguments, const std::string& word);

/// Returns the images of all stage directories of sharefs.yaml; none without sharefs.yaml, or with --root.
std::vector<conda::StagedImage> staged_images(Context& context, const config::Config* config);
/// Returns the names of the environments that `conda stage --all` would stage: on a share, without root's copy of the
/// present generation here. An environment that cannot be read is not among them.
std::vector<std::string> unstaged_environments(Context& context);
/// Returns the mount points among them at which a staged copy is mounted over a directory of a share.
std::set<std::string> staged_binds(const std::vector<conda::StagedImage>& images);
/// Mounts, as a further plan, staged copies over directories of shares (`stage.paths`) for which image and share are
/// mounted now; with `images` also the images that lie on shares (`conda.image_from_share`). An exit code other than 0
/// ends the command.
Result<int> mount_on_shares(Context& context, const config::Config& config, bool images);
/// Plans the unit that mounts staged images at boot: written and enabled where systemd runs, or removed if it is not
/// `wanted`. If it cannot be written a note of the plan says why.
void plan_staged_unit(Context& context, bool wanted, plan::Plan& plan);

} // namespace sharefs::cli
