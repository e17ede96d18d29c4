#pragma once
// The flow of `conda stage`: the present generation of an environment is copied to this host's own disk, by its image
// where root can mount that, else file by file.
#include "conda/staged.hpp"
#include "plan/host_lock.hpp"
#include "plan/say.hpp"

#include <functional>

namespace sharefs::conda {

struct StagingRequest {
  std::string store, name;
  std::string stage;                  ///< `conda.stage`: where copies lie
  std::uint64_t bytes_per_second = 0; ///< 0: no limit
  bool removes = false;               ///< all copies of the environment go
  std::optional<sys::User> as = {};   ///< who reads the store for root, whom its server refuses (root_squash)
  /// One `conda stage` works on a host at a time: two would write into the same copy.
  std::function<Result<plan::HostLock>()> lock;
};

/// As the host is now.
struct Staging {
  SharedEnvironment environment;
  std::string source;    ///< the present generation, without links
  Image image;           ///< of it, on the share
  std::string why_files; ///< why its image is not what is copied; empty: it is
  StagedCopies copies;
  StageAccess access;
  StagePlan made;
  std::string nothing; ///< why the plan is empty

  [[nodiscard]] unsigned number() const { return environment.current; }
  [[nodiscard]] std::string path() const; ///< of the copy
};
/// Errors: those of find_shared(); `config`: `conda.stage` lies on shared storage; `failed`: there is no room.
Result<Staging> plan_staging(sys::System& system, const StagingRequest& request, const plan::Say& say);
/// Copies, where that is planned. `busy`: a command has begun to work with a copy that was to be deleted.
Result<void> copy_staged(sys::System& system, const StagingRequest& request, const Staging& staging,
                         const plan::Say& say);

} // namespace sharefs::conda
