#pragma once
// The flow of `conda share`: what stands in the way of it, then a copy in the store that becomes generation 1. The plan
// of what others see afterwards is plan_share()'s.
#include "conda/guard_wheel.hpp"
#include "conda/make_generation.hpp"
#include "conda/share.hpp"

namespace sharefs::conda {

/// The directory of the shared environments, as the one who looks sees it.
struct StorePlace {
  std::string path;
  sys::Entry entry;    ///< or, while there is none, the directory in which it is made
  bool is_new = false; ///< it is made with the first environment
};

struct Sharing {
  StorePlace store;
  ShareRequest request;
  Diagnoses found;                    ///< errors: it cannot be shared
  std::uint64_t bytes_per_second = 0; ///< of the copy; 0: no limit
  bool protect = true;
  GuardFiles guard;      ///< that are added
  bool no_guard = false; ///< nor are they by later updates
  LeaseWish lease;
  ImageWish image;
  tree::CopyReport copied = {}; ///< when it is done
};

/// Reads all of the environment, and what is in its way: Sharing::found. `active`: $CONDA_PREFIX of who asks. Errors:
/// `permission`: others own the place of the generations; those of next_step().
Result<Sharing> prepare_sharing(sys::System& system, StorePlace store, const std::string& name, Source source,
                                const std::string& active, const plan::Say& say);

/// What holds the environment while the steps of the plan are done.
struct Shared {
  std::optional<Held> held;          ///< of ShareStep::exchange
  std::optional<NewGeneration> made; ///< of ShareStep::copy
};
/// Makes the place in the store, and the copy, if the step is one. What was cut off is gone on with.
Result<Shared> make_shared_copy(sys::System& system, Sharing& sharing, const plan::Say& say);

} // namespace sharefs::conda
