#pragma once
// What every change of a shared environment begins with: the environment as it has to be, the lease, and who runs it.
#include "conda/environment_store.hpp"
#include "plan/say.hpp"

namespace sharefs::conda {

/// The environment, which has a present generation. `not_found` and `unsupported`, with a hint at the way there.
Result<SharedEnvironment> find_shared(sys::System& system, const std::string& store, const std::string& name);
/// The same of an environment that was read already.
Result<SharedEnvironment> with_present_generation(SharedEnvironment found);
/// The same also for an environment whose name, or present generation, somebody has removed.
Result<SharedEnvironment> find_with_generations(sys::System& system, const std::string& store, const std::string& name);

/// Who asks for a lease, and for how long this command waits for another holder.
struct LeaseWish {
  std::string command;
  std::chrono::milliseconds wait{0};
};
/// Held for as long as the environment is changed; it excludes all other hosts. Once it is held the environment has to
/// be read again: the holder before us may have changed it.
Result<sys::Lease> take_lease(sys::System& system, const SharedEnvironment& environment, const LeaseWish& wish,
                              const plan::Say& say);

/// The uses that keep their generations, with the names of the users whose notes they are. Clears those that have
/// ended.
std::vector<Use> live_uses(sys::System& system, const SharedEnvironment& environment);

} // namespace sharefs::conda
