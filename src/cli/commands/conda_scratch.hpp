#pragma once
// Trees that `sharefs conda update` works with, and what killed updates have left of them.
#include "cli/context.hpp"
#include "conda/environment_store.hpp"

#include <string>

namespace sharefs::cli {

/// What has this name when this object goes, goes with it, whatever happens in between.
class ScratchTree {
 public:
  ScratchTree(Context& context, std::string path) : m_context(context), m_path(std::move(path)) {}
  ~ScratchTree();
  ScratchTree(const ScratchTree&) = delete;
  ScratchTree& operator=(const ScratchTree&) = delete;
  [[nodiscard]] const std::string& path() const { return m_path; }

 private:
  Context& m_context;
  std::string m_path;
};

/// A name that nobody guesses, and by which one that was killed is known.
std::string scratch_name(Context& context, unsigned generation);
/// Of updates of this user that were killed.
void remove_old_scratch(Context& context, const std::string& directory);
/// What one that was killed has left beside the generations. For who holds the lease: nobody else is at work.
void remove_unfinished(Context& context, const conda::SharedEnvironment& environment);

} // namespace sharefs::cli
