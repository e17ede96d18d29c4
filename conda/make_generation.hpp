#pragma once
// The one way to make a generation of a shared environment: under the lease, beside the others, with a hidden name
// until it is complete. Its tree is filled by a copy of a user's environment (share.hpp), by the changes of a command
// in a view of the present generation (update.hpp), or by links to the present generation and repaired copies
// (repair.hpp).
#include "conda/change.hpp"
#include "conda/environment.hpp"
#include "conda/guard_wheel.hpp"
#include "conda/image.hpp"

#include <functional>
#include <memory>

namespace sharefs::conda {

/// The settings for a change that makes a generation.
struct GenerationSettings {
  sys::LeaseRequest lease; ///< without its path
  bool protect = true;     ///< the generation gets no write bits
  bool makes_image = true; ///< `conda.image`
  std::string stage;       ///< `conda.stage`: for the image a staged copy of the generation before is read
  GuardFiles guard = {};   ///< added to it; `conda update` does not add it again if a user has removed it
};

/// A generation that is complete, or being filled. This object holds the lease; its destructor gives the lease back,
/// and deletes what was made and has no final name yet.
struct NewGeneration {
  SharedEnvironment environment; ///< as it was read under the lease
  std::optional<sys::Lease> lease;
  Generation record;                  ///< number 0: no generation is made
  std::string hidden;                 ///< the name of the tree until it is complete
  tree::Place tree;                   ///< with device and inode, since others may be able to replace the name
  std::optional<bool> sound;          ///< for `conda list`, VERIFIED; nullopt: it was not compared with its records
  std::optional<ImageNote> image;     ///< of its image, which lies at hidden_image() until publish()
  std::unique_ptr<ScratchTree> guard; ///< deletes the tree; nullptr: an unfinished copy stays for the next run
  std::unique_ptr<ScratchTree> image_guard;

  /// The hidden path of the tree.
  [[nodiscard]] std::string path() const;
  [[nodiscard]] std::string hidden_image() const;
};

struct GenerationRequest {
  SharedEnvironment environment; ///< as it was when the change was planned
  GenerationSettings settings;
  std::string near;  ///< local tree from which the image's files are read; empty: a staged copy, if there is one
  Generation record; ///< with the command, the message and the original
  /// The hidden name in the plan: then the environment must not have changed since it was planned. Empty: the present
  /// generation is changed, whichever it is once the lease is held.
  std::string hidden;
  bool resumes = false; ///< a copy at the hidden name is continued, and stays after a failure
  /// Makes the tree, and sets `tree`, `sound`, and in the record `no_guard`, `own_bytes` (an upper limit of the bytes
  /// that the generation before does not have), and `files` and `bytes`, unless they have to be counted yet.
  std::function<Result<void>(NewGeneration& making)> fill;
};

/// Takes the lease of an environment, then reads it as the holder before has left it; nothing is made yet. `conflict`:
/// somebody else has changed it since the change was planned; with `any` it only needs to have a present generation.
Result<NewGeneration> hold(sys::System& system, const SharedEnvironment& planned, const sys::LeaseRequest& request,
                           const plan::Say& say, bool any = false);

/// Returns a random name for the tree of a generation until it is complete.
std::string hidden_name(unsigned number);

/// Takes the lease and makes the generation with its image, under its hidden name. Errors: those of the lease and of
/// the fill; `conflict`: somebody else has changed the environment since it was planned; `unsupported`: all numbers are
/// used.
Result<NewGeneration> make_generation(sys::System& system, const GenerationRequest& making, const plan::Say& say);

/// Checks that the lease is still held, writes the record, and publishes the image. This comes right before the steps
/// of the plan that give the tree its name and switch to it, because a generation without a record counts as damaged.
Result<void> publish(sys::System& system, NewGeneration& made);
/// Notes, after those steps, whether the generation is sound. Unless users see it now the note stays that of the one
/// before.
void note_sound(sys::System& system, const NewGeneration& made);

/// The flow of `conda image`, which makes an image of the present generation unless it has an unchanged one.
struct ImagePlan {
  SharedEnvironment environment; ///< as it was when the image was planned
  std::string file;              ///< the path of the image while it is made
  plan::Plan plan;               ///< empty: there is an image already
};
Result<ImagePlan> plan_image(sys::System& system, const std::string& store, const std::string& name,
                             const plan::Say& say);
/// Makes the image and its note under the lease, before the steps of the plan. The result has no new generation, only
/// the image. `conflict`: somebody else has changed the environment.
Result<NewGeneration> make_missing_image(sys::System& system, const ImagePlan& imaging, const sys::LeaseRequest& lease,
                                         const plan::Say& say);

// The following functions are for GenerationRequest::fill.

/// A copy of an environment that has to be repaired.
struct CopyToRepair {
  tree::Place tree;                   ///< with device and inode
  std::string prefix;                 ///< the prefix that its files shall name
  std::vector<std::string> from = {}; ///< prefixes that are replaced
  bool runs_programs = false;         ///< the copy's Python may be run, to compile files
  std::string uncompiled = {};        ///< a directory of Python files to compile; empty: none
  bool in_part = false;               ///< faults that cannot be repaired stay, and are no error
};
/// Gives a copy its prefix, as `conda relocate` does, before users see it. `conflict`: another directory lies there;
/// `failed`: it has faults that cannot be repaired.
Result<void> repair_copy(sys::System& system, const CopyToRepair& copy, const plan::Say& say);

/// Gives a tree the modes and the group of a generation in this store. `of`: the state of the environment when it was
/// checked, for a tree that shares files with it (see admit_opened()); nullptr for a copy.
Result<void> close_tree(const tree::Place& tree, const sys::Entry& store, bool protect,
                        const EnvironmentState* of = nullptr);

} // namespace sharefs::conda
