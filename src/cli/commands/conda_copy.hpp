#pragma once
// A copy of an environment that is to become a generation. In the store a whole group may write: what was made there is
// known by device and inode, not by its name.
#include "cli/commands/conda_support.hpp"

namespace sharefs::cli {

struct CopyToMend {
  tree::Place tree;   ///< with device and inode
  std::string prefix; ///< that its files are to name
  std::vector<std::string> from = {};
  bool runs_programs = false; ///< of the copy, to compile Python: they are of who works
  bool in_part = false;       ///< what cannot be mended stays as it is, and is no error
};

/// Gives a copy its prefix, as `conda relocate` does, before anybody sees it. `conflict`: another directory lies there;
/// `failed`: what is wrong with it cannot be mended.
Result<void> mend_copy(Context& context, const CopyToMend& copy);

/// The modes of a generation in this store. `of`: what it was when it was judged, where it is no copy of our making
/// (see conda::admit_opened).
Result<void> close_tree(const tree::Place& tree, const sys::Entry& store, bool protect, bool give_group,
                        const conda::EnvironmentState* of = nullptr);

/// Before the tree, the generation at `path`, has its name: one without a record would be taken for damaged.
Result<void> write_record(Context& context, const std::string& path, const conda::Generation& record);

} // namespace sharefs::cli
