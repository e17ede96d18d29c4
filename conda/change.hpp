#pragma once
// The beginning of every change of a shared environment: it finds the environment, takes its lease, and lists its uses.
// Also the plans to switch between generations, the temporary trees of such a change, and the removal of those that
// killed commands have left.
#include "conda/environment_store.hpp"
#include "plan/plan.hpp"
#include "plan/say.hpp"

namespace sharefs::conda {

/// Reads an environment and checks that it has a present generation. Errors: `not_found` and `unsupported`, with a hint
/// how to get one.
Result<SharedEnvironment> find_shared(sys::System& system, const std::string& store, const std::string& name,
                                      const std::optional<sys::User>& as = {});
/// As find_shared(), but also accepts an environment whose link or present generation somebody has removed.
Result<SharedEnvironment> find_with_generations(sys::System& system, const std::string& store, const std::string& name);

/// Takes the lease, which is held while the environment is changed and excludes all other hosts; sets its path. The
/// caller then has to read the environment again, because the holder before may have changed it.
Result<sys::Lease> take_lease(sys::System& system, const SharedEnvironment& environment, sys::LeaseRequest request,
                              const plan::Say& say);

/// Returns the uses that keep their generations, with the names of the users who own the notes. Deletes notes of uses
/// that have ended.
std::vector<Use> find_live_uses(sys::System& system, const SharedEnvironment& environment);

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

/// Returns the action by which STORE/ENV leads to generation `number`. It fails if there is no such generation, as when
/// `conda gc` has deleted it before an undo.
plan::Link link_to(const SharedEnvironment& environment, unsigned number);
/// Plans that STORE/.generations/ENV/`unfinished` becomes generation `number`, whose record was written, and that
/// STORE/ENV leads to it.
plan::Plan plan_switch(const SharedEnvironment& environment, unsigned number, const std::string& unfinished);

/// Plans that STORE/ENV leads to generation `number`; an empty plan if it does. `not_found`: there is no such
/// generation; the hint lists the existing ones.
Result<plan::Plan> plan_rollback(const SharedEnvironment& environment, unsigned number);
/// Returns the generation from which the present one was made; if that is gone, the newest one before it, or of all; 0
/// if there is none.
unsigned previous_generation(const SharedEnvironment& environment);

} // namespace sharefs::conda
