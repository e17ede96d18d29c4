#pragma once
// Finds and mounts the images that root has staged on this host. The shares are not asked, so that images are mounted
// at boot before any server answers. An image on a share, or a copy over a directory of a share, is mounted after the
// share.
#include "base/diagnosis.hpp"
#include "conda/staged.hpp"
#include "plan/say.hpp"

#include <set>

namespace sharefs::conda {

/// A mount of a staged copy: that of its image, or the bind mount of the copy over its directory of a share.
struct StagedImage {
  StagedCopy copy;
  plan::Mount mount;
  bool is_mounted = false;
  bool needs_share = false; ///< the image lies on a share, or the copy is mounted over a directory of one

  [[nodiscard]] std::string name() const; ///< of the environment, or of the directory of the share
  [[nodiscard]] bool is_bind() const { return mount.fs_type == sys::k_bind; }
  /// Returns what has to be unmounted before a bind mount.
  [[nodiscard]] std::optional<plan::Unmount> older() const { return is_bind() ? copy.older : std::nullopt; }
};
/// Finds all copies below the directories `stages` that one of `makers` has made, complete or interrupted. Only local
/// disks are read.
std::vector<StagedCopy> find_copies(sys::System& system, const std::set<std::string>& stages,
                                    const std::set<unsigned>& makers);
/// Finds the complete copies below the directories `stages` (`conda.stage`), on local disks only. `binds`: directories
/// of shares (`stage.paths`) over which copies shall be mounted; others are found only while they are mounted.
std::vector<StagedImage> find_staged_images(sys::System& system, const std::set<std::string>& stages,
                                            const std::vector<std::string>& binds);

/// Returns the action that ends an older mount at the target of `bind`: of another copy, or of this copy's image by
/// another loop device. It has to be done before `bind`.
std::optional<plan::Unmount> older_bind(sys::System& system, const plan::Mount& bind, const sys::MountTable& table);
inline constexpr const char* k_why_older = "it is of what was there before";

/// True if the image is not mounted although it could be. A copy over a directory of a share can be mounted if the
/// share is mounted and the copy is not empty; an image on a share does not count.
bool is_missing(const StagedImage& image, const sys::MountTable& table);

/// Removes from `images` those over directories that no longer exist on their shares, and reports them (SF535). This
/// asks the shares.
Diagnoses take_out_gone(sys::System& system, std::vector<StagedImage>& images);

/// Removes from `images` those that are not mounted and have changed, and reports them (SF536). An image that was
/// written to is read completely.
Diagnoses take_out_damaged(sys::System& system, std::vector<StagedImage>& images, const plan::Say& say);

/// Plans the mounts of images that are not mounted: with `needs_share` those that need a share, otherwise the others.
plan::Plan mount_staged(const std::vector<StagedImage>& images, bool needs_share = false);
/// Adds the steps that unmount the mounted images. They come before a step of `plan` that unmounts a share they need.
void unmount_staged(const std::vector<StagedImage>& images, bool lazy, const sys::MountTable& table, plan::Plan& plan);
/// SF535: reports each image that is not mounted.
Diagnoses diagnose_staged(const std::vector<StagedImage>& images);

/// Returns the text of the systemd unit that mounts the images at boot. `program` is the command line of sharefs with
/// the options that name its configuration.
std::string staged_unit_text(const Argv& program, const std::set<std::string>& stages);
inline constexpr const char* k_staged_unit = "sharefs-staged.service";

} // namespace sharefs::conda
