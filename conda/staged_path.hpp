#pragma once
// A directory of the share on this host's own disk (staged.hpp): by an image of it (packed_path.hpp), or, where that
// cannot be had, as the files that it has.
#include "conda/packed_path.hpp"

namespace sharefs::conda {

/// A directory that may be staged.
struct SharedDirectory {
  std::string path;                       ///< without links
  bool is_shared = false;                 ///< it lies on a share
  std::optional<sys::User> by = {};       ///< who reads the share for root, whom its server refuses (root_squash)
  std::optional<tree::Survey> bound = {}; ///< see PathStagingRequest
};
/// `readers`: users who may read the share for root; `copies`: directories of copies, one of which may be mounted over
/// it. Errors: `usage`, `not_found`, `unsupported`, or why nobody can look at it.
Result<SharedDirectory> find_directory(sys::System& system, const std::string& asked,
                                       const std::vector<std::string>& readers, const std::set<std::string>& copies);

/// What is to be done for a directory.
struct PathStaging {
  Staging staging;
  tree::Survey survey;                ///< of what is copied
  std::optional<tree::Listing> files; ///< what is copied, where a list of it can be trusted
};
/// Errors: `config`: `at` lies on shared storage; `failed`: no room.
Result<PathStaging> plan_path_staging(sys::System& system, const PathStagingRequest& request, const PackedPath& packed);
/// Before the steps: copies, where that is planned, and removes what was cut off of others. No other staging of this
/// host may work until the steps are done: it would take this copy, which has no mark yet, for cut off.
Result<std::optional<plan::HostLock>> copy_path(sys::System& system, const PathStagingRequest& request,
                                                const PathStaging& path, const plan::Say& say);

/// What is staged below these directories, by root and by this process's user, and what was cut off.
struct StagedPath {
  std::string path; ///< that it is a copy of
  StagedCopy copy;
  bool is_bound = false;
  std::optional<plan::Unmount> older = {};                  ///< it is bound by a mount of its image that has gone
  [[nodiscard]] std::optional<tree::Survey> survey() const; ///< of what was copied
  [[nodiscard]] std::string state() const;                  ///< "mounted, in place of the share"
  [[nodiscard]] bool is_of(const std::string& directory) const;
};
std::vector<StagedPath> list_staged_paths(sys::System& system, const std::set<std::string>& directories);
/// For a user: root's copy of what the directory holds, which is for all who may read that. Empty: none.
std::string copy_of_root(sys::System& system, const std::string& copies, const std::string& path,
                         const tree::Survey& survey);
/// Takes these away. No staging may work meanwhile.
plan::Plan plan_drop(const std::vector<StagedPath>& staged);

} // namespace sharefs::conda
