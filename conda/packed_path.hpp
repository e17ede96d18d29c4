#pragma once
// A directory of the share, whatever it holds, and what is made of it once for all nodes, on the share:
//   STORE/NAME-FINGERPRINT.sqfs{,.json}   the image and its note; what the directory holds now has another fingerprint
//   STORE/NAME-FINGERPRINT.files          or, of few large files, what they are (tree::Listing): they are copied as
//                                         they lie, and handed on from node to node
//   STORE/new-XXXXXXXXXXXX.sqfs           an image that is being made
#include "conda/make_image.hpp"
#include "conda/staging.hpp"
#include "tree/survey.hpp"

namespace sharefs::conda {

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

/// Who may write in the directory of images, or where it is to be made.
struct Packer {
  std::optional<sys::User> user; ///< nullopt: this process's user
  std::string place;             ///< that belongs to the user
};
Result<Packer> find_packer(sys::System& system, const std::string& store, const std::vector<std::string>& readers);

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

/// The directory of images. It is listed, and the one above: another node may just have made what a client of NFS
/// believes for a while not to be there.
sys::Entry probe_store(sys::System& system, const PathStagingRequest& request);
/// What lies in the directory, if root or the owner of the store has noted it, and nobody else could have.
std::optional<tree::Listing> read_list(sys::System& system, const PathStagingRequest& request,
                                       const std::string& packed, std::uint32_t store_owner);
/// What was read of the directory is what it held when it was looked at: by that it is known again. `conflict`.
Result<void> check_unchanged(sys::System& system, const PathStagingRequest& request, const tree::Survey& before,
                             const plan::Say& say);

} // namespace sharefs::conda
