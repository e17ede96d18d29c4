#pragma once
// A directory of the share, whatever it holds, on this host's own disk: by an image of it, which is made once on the
// share, or, where that cannot be had, as the files that it has.
//   STORE/NAME-FINGERPRINT.sqfs{,.json}   the image and its note; what the directory holds now has another fingerprint
//   STORE/NAME-FINGERPRINT.files          or, of few large files, what they are (tree::Listing): they are copied as
//                                         they lie, and handed on from node to node
//   STORE/new-XXXXXXXXXXXX.sqfs           an image that is being made
//   AT/UID/PARENT/NAME/HASH/              the copy, laid out as that of an environment (staged.hpp), named by the hash
//                                         of its image, or by the fingerprint of its files
#include "conda/make_image.hpp"
#include "conda/staging.hpp"
#include "tree/survey.hpp"

namespace sharefs::conda {

inline constexpr std::size_t k_hash_digits = 16; ///< of the name of a copy

struct PathStagingRequest {
  std::string path;    ///< of the directory, without links
  std::string store;   ///< of images, on the share
  std::string at;      ///< on this host's own disk
  bool is_own = false; ///< it lies in this user's own directory for caches, which is made before the copy
  bool binds = false;  ///< the copy is mounted over the directory, read-only
  /// Of the copy that is mounted over the directory here: what the share has now cannot be seen.
  std::optional<tree::Survey> bound = {};
  Copying how = {};
};

/// What there is of a directory to bring to nodes: all nodes are told the same.
struct PackedPath {
  tree::Survey survey;
  std::string image;   ///< its path but for `.sqfs`
  bool exists = false; ///< the image, or the list of files
};
/// "FINGERPRINT:FILES:BYTES", as one machine tells it to others, and as marks have it. nullopt: it is no such text.
std::string text_of(const tree::Survey& survey);
std::optional<tree::Survey> survey_in(std::string_view text);
/// Few large files: an image would be as large as they are, and no faster.
bool is_few_large(const tree::Survey& survey);
/// Of what it holds by that survey.
std::string packed_image(const PathStagingRequest& request, const tree::Survey& survey);
/// Looks at all that lies in the directory, by its names and attributes.
Result<PackedPath> survey_path(sys::System& system, const PathStagingRequest& request, const plan::Say& say);
/// Makes the image, or the list of few large files, for nobody else than the directory is; those of what the directory
/// held before go, and what packings that were killed have left. As whoever may write in the store. Errors: those of
/// make_image() and tree::list_contents(); `conflict`: the directory has changed meanwhile.
Result<void> pack_path(sys::System& system, const PathStagingRequest& request, const PackedPath& packed,
                       const plan::Say& say);

/// As the host is now.
struct PathStaging {
  Image image;
  std::string why_files;              ///< why the image is not what is copied; empty: it is
  std::optional<tree::Listing> files; ///< what is copied, where a list of it can be trusted
  sys::Entry directory;               ///< of the copies
  std::string copy;
  tree::Survey survey; ///< of what is copied
  StageAccess access;
  bool copies = false;
  plan::Plan plan;
  std::string nothing; ///< why the plan is empty
};
/// Errors: `config`: `at` lies on shared storage; `failed`: no room.
Result<PathStaging> plan_path_staging(sys::System& system, const PathStagingRequest& request, const PackedPath& packed);
/// Before the steps: copies, where that is planned, and removes what was cut off of others. No other staging of this
/// host may work until the steps are done: it would take this copy, which has no mark yet, for cut off.
Result<std::optional<plan::HostLock>> copy_path(sys::System& system, const PathStagingRequest& request,
                                                const PathStaging& staging, const plan::Say& say);

/// What is staged below these directories, by root and by this process's user, and what was cut off.
struct StagedPath {
  std::string path; ///< that it is a copy of
  StagedCopy copy;
  bool is_bound = false;
  std::optional<plan::Unmount> older = {};                  ///< it is bound by a mount of its image that has gone
  [[nodiscard]] std::optional<tree::Survey> survey() const; ///< of what was copied
  [[nodiscard]] bool is_whole() const;                      ///< and it can be read now
  [[nodiscard]] std::string state() const;                  ///< "mounted, in place of the share"
  [[nodiscard]] bool is_of(const std::string& directory) const;
};
std::vector<StagedPath> list_staged_paths(sys::System& system, const std::set<std::string>& directories);
/// Takes these away. No staging may work meanwhile.
plan::Plan plan_drop(const std::vector<StagedPath>& staged);

} // namespace sharefs::conda
