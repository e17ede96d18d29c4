#pragma once
// Temporary trees of sharefs while it makes a generation, and the removal of those that killed commands have left.
#include "conda/environment_store.hpp"
#include "plan/say.hpp"

#include <string>

namespace sharefs::conda {

/// Deletes a tree or a file at the path when this object is destroyed. A tree that was renamed in the meantime stays.
class ScratchTree {
 public:
  ScratchTree(sys::System& system, std::string path, plan::Say say)
      : m_system(system), m_path(std::move(path)), m_say(std::move(say)) {}
  ~ScratchTree();
  ScratchTree(const ScratchTree&) = delete;
  ScratchTree& operator=(const ScratchTree&) = delete;
  [[nodiscard]] const std::string& path() const { return m_path; }

 private:
  sys::System& m_system;
  std::string m_path;
  plan::Say m_say;
};

/// Returns a name for a scratch tree that nobody can guess. It names the process, so that a tree that a killed process
/// has left can be found.
std::string scratch_name(sys::System& system, unsigned generation);
/// Deletes the scratch trees in `directory` that killed commands of this user have left.
void remove_old_scratch(sys::System& system, const std::string& directory, const plan::Say& say);
/// Deletes trees, images and records that a killed command has left beside the generations. The caller holds the lease,
/// so no other command works there.
void remove_unfinished(sys::System& system, const SharedEnvironment& environment, const plan::Say& say);

} // namespace sharefs::conda
