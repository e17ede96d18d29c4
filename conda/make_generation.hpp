#pragma once
// The one way to make a generation of a shared environment: under the lease, beside the others, with a hidden name
// until it is complete. Its tree is filled by a copy of a user's environment (share.hpp), by the changes of a command
// in a view of the present generation (update.hpp), or by links to the present generation and repaired copies
// (repair.hpp).
#include "conda/change.hpp"
#include "conda/environment.hpp"
#include "conda/make_image.hpp"
#include "conda/scratch.hpp"

#include <functional>
#include <memory>

namespace sharefs::conda {

/// A generation that is complete, or being filled. This object holds the lease; its destructor gives the lease back,
/// and deletes the tree if that still has its hidden name.
struct NewGeneration {
  SharedEnvironment environment;  ///< as it was read under the lease
  Generation record;              ///< has only the number while the tree is filled
  std::string hidden;             ///< the name of the tree until it is complete
  std::optional<ImageNote> image; ///< of its image, which lies at hidden_image() until publish()
  std::optional<bool> sound;      ///< for `conda list`, VERIFIED; nullopt: it was not compared with its records
  std::optional<sys::Lease> lease;
  std::unique_ptr<ScratchTree> guard; ///< deletes the tree; nullptr: an unfinished copy stays for the next run
  std::unique_ptr<ScratchTree> image_guard;

  /// The hidden path of the tree.
  [[nodiscard]] std::string path() const;
  [[nodiscard]] std::string hidden_image() const;
};

/// The result of GenerationRequest::fill.
struct FilledTree {
  tree::Place tree;                   ///< with device and inode, since others may be able to replace the name
  std::uint64_t files = 0, bytes = 0; ///< 0 files: not counted yet
  std::uint64_t own_bytes = 0;        ///< upper limit of the bytes that the generation before does not have
  std::optional<bool> sound = {};
  bool no_guard = false; ///< for the record
};

struct GenerationRequest {
  SharedEnvironment environment; ///< as it was when the change was planned
  LeaseSettings lease;
  ImageSettings image;
  std::string near;             ///< local tree from which the image's files are read; empty: a staged copy, if any
  std::string command, message; ///< for the record
  Original original = {};
  /// The hidden name in the plan: then the environment must not have changed since it was planned. Empty: the present
  /// generation is changed, whichever it is once the lease is held.
  std::string hidden;
  bool resumes = false; ///< a copy at the hidden name is continued, and stays after a failure
  std::function<Result<FilledTree>(const NewGeneration& making)> fill;
};

/// An environment whose lease is held.
struct HeldEnvironment {
  SharedEnvironment environment; ///< as it was read under the lease
  sys::Lease lease;
};
/// Takes the lease of an environment for a change that was planned. `conflict`: somebody else has changed it since.
Result<HeldEnvironment> hold(sys::System& system, const SharedEnvironment& planned, const LeaseSettings& settings,
                             const plan::Say& say);

/// Returns a random name for the tree of a generation until it is complete.
std::string hidden_name(unsigned number);

/// Takes the lease and makes the generation with its image, under its hidden name. Errors: those of the lease and of
/// the fill; `conflict`: somebody else has changed the environment since it was planned; `unsupported`: all numbers are
/// used.
Result<NewGeneration> make_generation(sys::System& system, const GenerationRequest& making, const plan::Say& say);

/// Checks that the lease is still held, writes the record and publishes the image. This comes right before the steps of
/// the plan that give the tree its name and switch to it, because a generation without a record counts as damaged.
Result<void> publish(sys::System& system, NewGeneration& made);
/// Notes whether the generation is sound. Called once STORE/ENV leads to it.
void note_soundness(sys::System& system, const NewGeneration& made);

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
