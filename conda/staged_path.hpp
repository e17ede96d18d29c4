#pragma once
// Stages a directory of the share on this host's own disk (staged.hpp): by its image, or file by file where there is no
// image or it cannot be mounted. Before that it is packed once for all nodes (packed_path.cpp). The result lies on the
// share:
//   STORE/NAME-FINGERPRINT.sqfs{,.json}   the image and its note; a directory that changes gets another fingerprint
//   STORE/NAME-FINGERPRINT.files          for few large files a list of them (tree::Listing) instead: the files are
//                                         copied as they are, and handed on from node to node
//   STORE/new-XXXXXXXXXXXX.sqfs           an image that is being made
#include "conda/image.hpp"
#include "conda/staging.hpp"
#include "tree/survey.hpp"

namespace sharefs::conda {

struct PathStagingRequest {
  std::string path;    ///< of the directory, without links
  std::string store;   ///< the directory of images on the share
  std::string at;      ///< the directory of copies on this host's own disk
  bool is_own = false; ///< `at` lies in this user's own directory for caches, which is made before the copy
  bool binds = false;  ///< the copy is mounted over the directory, read-only
  /// The survey of the copy that is mounted over the directory here, and hides the present content of the share.
  std::optional<tree::Survey> bound = {};
  std::vector<std::string> readers = {}; ///< users who may read the share for root
  CopySettings how = {};
};

/// The user who may write in the directory of images, or may make it.
struct Packer {
  std::optional<sys::User> user; ///< nullopt: this process's user
  std::string place;             ///< the directory that belongs to the user
};
/// Finds the user who can pack directories into `store`. `permission`: anybody may have made it.
Result<Packer> find_packer(sys::System& system, const std::string& store, const std::vector<std::string>& readers);

/// The packed form of a directory, the same for all nodes.
struct PackedPath {
  tree::Survey survey;
  std::string image;   ///< path of the image without `.sqfs`
  bool exists = false; ///< the image or the list of files exists
};
/// Returns "FINGERPRINT:FILES:BYTES", the form that machines send to each other and that marks have. survey_in() parses
/// it; nullopt for another text.
std::string text_of(const tree::Survey& survey);
std::optional<tree::Survey> survey_in(std::string_view text);
/// True for few large files: an image would be as large as they are, and no faster.
bool is_few_large(const tree::Survey& survey);
/// Returns the path of the image, without `.sqfs`, for the content that the survey describes.
std::string packed_image(const PathStagingRequest& request, const tree::Survey& survey);
/// Reads the names and attributes of everything in the directory, and finds its packed form.
Result<PackedPath> survey_path(sys::System& system, const PathStagingRequest& request, const plan::Say& say);
/// Makes the image, or the list of few large files, readable only for users who can read the directory. Removes packed
/// forms of the directory's earlier content, and images that killed commands have left. The caller is a user who may
/// write in the store. Errors: those of make_image() and tree::list_contents(); `conflict`: the directory has changed
/// meanwhile.
Result<void> pack_path(sys::System& system, const PathStagingRequest& request, const PackedPath& packed,
                       const plan::Say& say);

/// The directory of images. Its owner writes what the kernel of each node reads.
struct ImageDirectory {
  std::string resolved;    ///< its path without links
  std::uint32_t owner = 0; ///< whose images are used, beside root's
  std::string untrusted;   ///< why nothing in it is used; empty: it is used
};
/// Reads the directory of images. It is listed, and so is the one above: an NFS client caches for a while that a name
/// is missing, and another node may just have made it.
ImageDirectory probe_images(sys::System& system, const PathStagingRequest& request);
/// Reads the list of the directory's files; nullopt unless only root or the owner of the store can have written it.
Result<std::optional<tree::Listing>> read_list(sys::System& system, const PathStagingRequest& request,
                                               const std::string& packed, std::uint32_t store_owner);
/// Fails with `conflict` if the directory has changed since the survey `before`, which names the packed form.
Result<void> check_unchanged(sys::System& system, const PathStagingRequest& request, const tree::Survey& before,
                             const plan::Say& say);

/// Finds the directory, and sets `path`, `bound` and who reads the share if its server refuses root (root_squash).
/// `readers`: users who may read the share for root; `copies`: directories of copies, one of which may be mounted over
/// it; `any`: it need not lie on a share. Errors: `usage`, `not_found`, `unsupported`, or the reason why it cannot be
/// read.
Result<PathStagingRequest> find_directory(sys::System& system, const std::string& asked,
                                          const std::vector<std::string>& readers, const std::set<std::string>& copies,
                                          bool any);

/// Plans the staging of a directory. Errors: `config`: `at` lies on shared storage; `failed`: no room.
Result<Staging> plan_path_staging(sys::System& system, const PathStagingRequest& request, const PackedPath& packed);
/// Makes the copy if one is planned, before the steps, and removes interrupted copies of earlier content. The returned
/// lock keeps out other stagings on this host until the steps are done: they would take this copy, which has no mark
/// yet, for an interrupted one.
Result<std::optional<plan::HostLock>> copy_path(sys::System& system, const PathStagingRequest& request,
                                                const Staging& staging, const plan::Say& say);

/// Returns the state of a copy that find_copies() has found: "mounted, in place of the share".
std::string state_of(const StagedCopy& copy);
/// True if it is a copy of this directory; an interrupted copy is compared by its place.
bool is_staged_from(const StagedCopy& copy, const std::string& directory);
/// Lists the copies below these directories that the users `makers` have made.
std::vector<StagedCopy> list_staged_paths(sys::System& system, const std::set<std::string>& directories,
                                          const std::set<unsigned>& makers);
/// Returns, for a user, the path of root's copy with this content, which all readers of the directory may use; empty if
/// there is none, or if this process is root.
std::string copy_of_root(sys::System& system, const std::string& copies, const std::string& path,
                         const tree::Survey& survey);
/// Plans the removal of these copies. The caller has to keep out other stagings meanwhile.
plan::Plan plan_drop(const std::vector<StagedCopy>& staged);

} // namespace sharefs::conda
