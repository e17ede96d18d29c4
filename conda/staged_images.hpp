#pragma once
// What root has staged on this host, whatever the stores say now: no share is asked, so that images are mounted again
// at boot before any server answers. What lies on a share itself, or over a directory of it, is mounted behind the
// share.
#include "base/diagnosis.hpp"
#include "conda/staged.hpp"
#include "plan/say.hpp"

#include <set>

namespace sharefs::conda {

struct StagedImage {
  std::string name;  ///< of the environment, or of the directory of the share
  std::string copy;  ///< the resolved path of the copy
  plan::Mount mount; ///< of the image on it, or of it over the directory of the share
  bool has_mount_point = false, is_mounted = false;
  bool needs_share = false;                ///< the image on a share, or a directory of it that is mounted over
  bool is_empty = false;                   ///< nothing is in the copy that is to lie over a directory of a share
  ImageNote doubtful = {};                 ///< what the image has to be, see StagedCopy::is_doubtful(); else empty
  std::optional<plan::Unmount> older = {}; ///< see older_bind()
  std::optional<unsigned> reader = {};     ///< who reaches the share for root
  friend bool operator==(const StagedImage&, const StagedImage&) = default;
};
/// Those that are whole below these directories (`conda.stage`); of another than a local disk none. `binds`:
/// directories of shares (`stage.paths`) that copies are to be mounted over; others are found while they are.
std::vector<StagedImage> find_staged_images(sys::System& system, const std::set<std::string>& stages,
                                            const std::vector<std::string>& binds);

/// The mount of another copy, or of this one's image by another loop device, where `bind` is to lie: it goes first.
std::optional<plan::Unmount> older_bind(sys::System& system, const plan::Mount& bind, const sys::MountTable& table);
inline constexpr const char* k_why_older = "it is of what was there before";

/// It is on this host's own disk, is not mounted, and could be: over a directory of a share if that is mounted, and the
/// copy is not empty, whose image could not be mounted.
bool is_missing(const StagedImage& image, const sys::MountTable& table);

/// Takes out those that are to lie over directories which their shares have no more, and names them (SF535). The shares
/// are asked.
Diagnoses take_out_gone(sys::System& system, std::vector<StagedImage>& images);

/// Takes out those that are not mounted and not what they have to be any more, and names them (SF536). Of an image that
/// was written to all is read.
Diagnoses take_out_damaged(sys::System& system, std::vector<StagedImage>& images, const plan::Say& say);

/// What mounts those that are not mounted; `needs_share`: those that wait for a share, or else those that do not.
plan::Plan mount_staged(const std::vector<StagedImage>& images, bool needs_share = false);
/// What unmounts those that are mounted. Where a step of `plan` unmounts the share that one needs, it goes first.
void unmount_staged(const std::vector<StagedImage>& images, bool lazy, const sys::MountTable& table, plan::Plan& plan);
/// SF535: one that is not mounted.
Diagnoses diagnose_staged(const std::vector<StagedImage>& images);

/// The unit that mounts them when the machine boots: `program` is sharefs as the machine has it, with the words that
/// lead it to its configuration.
std::string staged_unit_text(const Argv& program, const std::set<std::string>& stages);
inline constexpr const char* k_staged_unit = "sharefs-staged.service";

} // namespace sharefs::conda
