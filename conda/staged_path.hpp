#pragma once
// Stages a directory of the share on this host's own disk (staged.hpp): by its image (packed_path.hpp), or file by file
// where there is no image or it cannot be mounted.
#include "conda/packed_path.hpp"

namespace sharefs::conda {

/// A directory that may be staged.
struct SharedDirectory {
  std::string path;                       ///< without links
  bool is_shared = false;                 ///< it lies on a share
  std::optional<sys::User> by = {};       ///< the user who reads the share if its server refuses root (root_squash)
  std::optional<tree::Survey> bound = {}; ///< see PathStagingRequest
};
/// Finds the directory. `readers`: users who may read the share for root; `copies`: directories of copies, one of which
/// may be mounted over it. Errors: `usage`, `not_found`, `unsupported`, or the reason why it cannot be read.
Result<SharedDirectory> find_directory(sys::System& system, const std::string& asked,
                                       const std::vector<std::string>& readers, const std::set<std::string>& copies);

/// The plan to stage a directory.
struct PathStaging {
  Staging staging;
  tree::Survey survey;                ///< of the content that is copied
  std::optional<tree::Listing> files; ///< the files to copy, if there is a trusted list of them
};
/// Errors: `config`: `at` lies on shared storage; `failed`: no room.
Result<PathStaging> plan_path_staging(sys::System& system, const PathStagingRequest& request, const PackedPath& packed);
/// Makes the copy if one is planned, before the steps, and removes interrupted copies of earlier content. The returned
/// lock keeps out other stagings on this host until the steps are done: they would take this copy, which has no mark
/// yet, for an interrupted one.
Result<std::optional<plan::HostLock>> copy_path(sys::System& system, const PathStagingRequest& request,
                                                const PathStaging& path, const plan::Say& say);

/// A staged copy of a directory, complete or interrupted.
struct StagedPath {
  std::string path; ///< the directory on the share
  StagedCopy copy;
  bool is_bound = false;                                    ///< the copy is mounted over the directory
  std::optional<plan::Unmount> older = {};                  ///< ends a bind of this copy's image by an older mount
  [[nodiscard]] std::optional<tree::Survey> survey() const; ///< of the copied content
  [[nodiscard]] std::string state() const;                  ///< "mounted, in place of the share"
  /// True if it is a copy of this directory; an interrupted copy is compared by its place.
  [[nodiscard]] bool is_of(const std::string& directory) const;
};
/// Lists the copies below these directories that root and this process's user have made.
std::vector<StagedPath> list_staged_paths(sys::System& system, const std::set<std::string>& directories);
/// Returns, for a user, the path of root's copy with this content, which all readers of the directory may use; empty if
/// there is none, or if this process is root.
std::string copy_of_root(sys::System& system, const std::string& copies, const std::string& path,
                         const tree::Survey& survey);
/// Plans the removal of these copies. The caller has to keep out other stagings meanwhile.
plan::Plan plan_drop(const std::vector<StagedPath>& staged);

} // namespace sharefs::conda
