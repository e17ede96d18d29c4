#pragma once
// The one way to make a generation of a shared environment: under the lease, beside the others, with a hidden name
// until it is complete. Its tree is filled by a copy of a user's environment (share.hpp), by what a command leaves in a
// view of the present generation (update.hpp), or by links to the present generation and mended copies (repair.hpp).
#include "conda/change.hpp"
#include "conda/environment.hpp"
#include "conda/make_image.hpp"
#include "conda/scratch.hpp"

#include <functional>
#include <memory>

namespace sharefs::conda {

/// A generation that is complete, or being filled. The lease is held, and a tree that did not get its name is deleted,
/// until this object is destroyed.
struct NewGeneration {
  SharedEnvironment environment;  ///< as it is under the lease
  Generation record;              ///< while the tree is filled: only the number
  std::string hidden;             ///< the name that the tree has until it is complete
  std::optional<ImageNote> image; ///< it has one, at hidden_image() until confirm()
  std::optional<bool> sound;      ///< what `conda list` shows as VERIFIED; nullopt: it was not compared
  std::optional<sys::Lease> lease;
  std::unique_ptr<ScratchTree> guard; ///< nullptr: what was copied stays for the next run
  std::unique_ptr<ScratchTree> image_guard;

  /// The hidden path of the tree.
  [[nodiscard]] std::string path() const;
  [[nodiscard]] std::string hidden_image() const;
};

/// What a fill has made.
struct Filled {
  tree::Place tree;                   ///< known by device and inode: others may be able to replace the name
  std::uint64_t files = 0, bytes = 0; ///< 0 files: not counted yet
  std::uint64_t own_bytes = 0;        ///< at most so many bytes are not in the generation before
  std::optional<bool> sound = {};
  bool no_guard = false; ///< for the record
};

struct Making {
  SharedEnvironment environment; ///< as it was when the change was planned
  LeaseWish lease;
  ImageWish image;
  std::string near;             ///< a tree on this host from which the new one is copied; empty: the one before
  std::string command, message; ///< for the record, as is
  Original original = {};
  /// The hidden name that the plan names: the environment must not have changed since. Empty: what is the present
  /// generation by then is changed.
  std::string hidden;
  bool resumes = false; ///< what is at the hidden name is gone on with, and stays when this fails
  std::function<Result<Filled>(const NewGeneration& making)> fill;
};

/// Takes the lease of an environment for a change that was planned. `conflict`: somebody else has changed it since.
struct Held {
  SharedEnvironment environment; ///< as it is now
  sys::Lease lease;
};
Result<Held> hold(sys::System& system, const SharedEnvironment& planned, const LeaseWish& wish, const plan::Say& say);

/// A name for the tree of a generation until it is complete.
std::string hidden_name(unsigned number);

/// Errors: those of the lease and of the fill; `conflict`: somebody else has changed the environment since it was
/// planned; `unsupported`: there are no more numbers.
Result<NewGeneration> make_generation(sys::System& system, const Making& making, const plan::Say& say);

/// The last thing before the steps of the plan that give the tree its name and switch to it: checks that the lease is
/// still ours, and writes the record. A generation without a record would be taken for damaged.
Result<void> confirm(sys::System& system, NewGeneration& made);
/// The generation is in use from now on.
void note_made(sys::System& system, const NewGeneration& made);

// What fills need.

/// The copy of an environment that is to be mended.
struct CopyToMend {
  tree::Place tree;                   ///< with device and inode
  std::string prefix;                 ///< that its files are to name
  std::vector<std::string> from = {}; ///< prefixes that are replaced
  bool runs_programs = false;         ///< programs of the copy may be run, to compile Python
  std::string uncompiled = {};        ///< directory of Python that is to be compiled; empty: none
  bool in_part = false;               ///< what cannot be mended stays as it is, and is no error
};
/// Gives a copy its prefix, as `conda relocate` does, before anybody sees it. `conflict`: another directory lies there;
/// `failed`: what is wrong with it cannot be mended.
Result<void> mend_copy(sys::System& system, const CopyToMend& copy, const plan::Say& say);

/// Gives a tree the modes and the group of a generation in this store. `of`: what it was when it was judged, where it
/// is no copy of our making (see admit_opened()).
Result<void> close_tree(const tree::Place& tree, const sys::Entry& store, bool protect,
                        const EnvironmentState* of = nullptr);

} // namespace sharefs::conda
