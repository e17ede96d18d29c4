#pragma once
// Makes the image of a generation beside it (image.hpp), while the lease of the environment is held.
#include "conda/change.hpp"
#include "conda/image.hpp"
#include "conda/scratch.hpp"
#include "plan/plan.hpp"
#include "plan/say.hpp"
#include "tree/pack.hpp"

#include <memory>

namespace sharefs::conda {

/// The settings for the image of a new generation.
struct ImageSettings {
  bool makes = true; ///< `conda.image`
  std::string stage; ///< `conda.stage`: a staged copy of the generation before is read instead of the share
};

/// Makes the file `packing.file`, which must not exist, from the tree of the generation with this record, or of one
/// that is being made. Users who may read the tree can read the file. `name` is the environment's name; its image gets
/// a file EXTERNALLY-MANAGED (PEP 668), since pip would install into the user's home if it cannot write to the
/// environment, and no compiled files that do not fit their sources. With an empty `name` the image has everything in
/// the tree. Errors: those of tree::pack(); `failed`: there is no room.
Result<ImageNote> make_image(sys::System& system, tree::Packing packing, const Generation& record,
                             const std::string& name, const plan::Say& say);
/// Removes an entry at the path of an image, its note or a list: any user who may write in the store may have put a
/// link or a FIFO there. `conflict`: it is a directory, which may hold a user's work.
Result<void> clear_place(sys::System& system, const std::string& path);
/// Writes the image note of a generation, and replaces any other entry there.
Result<void> write_image_note(sys::System& system, const ImageNote& note, const std::string& generation);
/// True if the file has the size and checksum in the note of an image. Reads all of it.
Result<bool> is_as_noted(sys::System& system, const std::string& path, const ImageNote& note, const plan::Say& say);
/// Gives the image `file` its final name and writes its note; replaces other entries there. `conflict`: a directory has
/// one of the names.
Result<void> publish_image(sys::System& system, const std::string& file, const ImageNote& note,
                           const std::string& generation);

/// The flow of `conda image`, which makes an image of the present generation unless it has an unchanged one.
struct ImagePlan {
  SharedEnvironment environment; ///< as it was when the image was planned
  std::string file;              ///< the path of the image while it is made
  plan::Plan plan;               ///< empty: there is an image already
};
/// `letters` are a part of the file's name until it is complete; they are the same for all plans of one command.
Result<ImagePlan> plan_image(sys::System& system, const std::string& store, const std::string& name,
                             const std::string& letters, const plan::Say& say);
/// The lease and the image, which are kept while the steps of the plan are done.
struct MadeImage {
  sys::Lease lease;
  ImageNote note;
  std::unique_ptr<ScratchTree> guard = {}; ///< deletes the file if it does not get its name
};
/// Makes the image and its note under the lease, before the steps of the plan. `conflict`: somebody else has changed
/// the environment.
Result<MadeImage> make_missing_image(sys::System& system, const ImagePlan& imaging, const LeaseSettings& lease,
                                     const plan::Say& say);

} // namespace sharefs::conda
