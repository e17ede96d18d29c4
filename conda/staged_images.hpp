#pragma once
// The images that root has staged on this host, whatever their stores say now: no share is asked, so that they are
// mounted again at boot before any server answers.
#include "base/diagnosis.hpp"
#include "conda/staged.hpp"

#include <set>

namespace sharefs::conda {

struct StagedImage {
  std::string name; ///< of the environment, or of the directory of the share
  std::string copy; ///< the resolved path on which it is mounted, or is to be
  bool has_mount_point = false, is_mounted = false;
  friend bool operator==(const StagedImage&, const StagedImage&) = default;
};
/// Those that are whole below these directories (`conda.stage`); of another than a local disk none.
std::vector<StagedImage> find_staged_images(sys::System& system, const std::set<std::string>& stages);

/// What mounts those that are not mounted, and what unmounts those that are.
plan::Plan mount_staged(const std::vector<StagedImage>& images);
plan::Plan unmount_staged(const std::vector<StagedImage>& images, bool lazy);
/// SF535: one that is not mounted.
Diagnoses diagnose_staged(const std::vector<StagedImage>& images);

/// The unit that mounts them when the machine boots: `program` is sharefs as the machine has it, with the words that
/// lead it to its configuration.
std::string staged_unit_text(const Argv& program, const std::set<std::string>& stages);
inline constexpr const char* k_staged_unit = "sharefs-staged.service";

} // namespace sharefs::conda
