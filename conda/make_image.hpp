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

/// What whoever makes a generation wants of its image.
struct ImageWish {
  bool makes = true; ///< `conda.image`
  std::string stage; ///< `conda.stage`: a staged copy of the generation before is read in place of the share
};

/// Makes the file `packing.file`, where nothing lies, of the generation of this record, or of what becomes it; it is
/// readable for those who may read the tree. `name`: of the environment, whose image has a file EXTERNALLY-MANAGED (PEP
/// 668), because pip would install into the user's home from a directory that it cannot write to, and no compiled
/// Python that does not fit its source; empty: it is none, and its image has all that lies there. Errors: those of
/// tree::pack(); `failed`: there is no room.
Result<ImageNote> make_image(sys::System& system, tree::Packing packing, const Generation& record,
                             const std::string& name, const plan::Say& say);
/// Takes away what has the name of an image, of its note or of a list: whoever may write in the store may have put a
/// link or a FIFO there. `conflict`: a directory, which may hold anybody's work.
Result<void> clear_place(sys::System& system, const std::string& path);
/// Writes the note of a generation, in place of whatever lies there.
Result<void> write_image_note(sys::System& system, const ImageNote& note, const std::string& generation);
/// Does a file hold what is noted of an image? Reads all of it.
Result<bool> is_as_noted(sys::System& system, const std::string& path, const ImageNote& note, const plan::Say& say);
/// Gives the file its name, with the note beside it, in place of whatever lies there. `conflict`: a directory does.
Result<void> publish_image(sys::System& system, const std::string& file, const ImageNote& note,
                           const std::string& generation);

/// The flow of `conda image`: the image of the present generation, if it has none that is as it was made.
struct Imaging {
  SharedEnvironment environment; ///< as it was when this was planned
  std::string file;              ///< where the image is made
  plan::Plan plan;               ///< empty: there is one
};
/// `letters`: of the file's name until it is complete; the same for all looks of one command.
Result<Imaging> plan_image(sys::System& system, const std::string& store, const std::string& name,
                           const std::string& letters, const plan::Say& say);
/// What holds the environment while the steps of the plan are done.
struct Imaged {
  sys::Lease lease;
  ImageNote note;
  std::unique_ptr<ScratchTree> guard = {}; ///< of the file, until it has its name
};
/// Before the steps: makes the image, with its note, under the lease. `conflict`: somebody else has changed the
/// environment.
Result<Imaged> make_missing_image(sys::System& system, const Imaging& imaging, const LeaseWish& lease,
                                  const plan::Say& say);

} // namespace sharefs::conda
