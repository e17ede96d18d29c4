#pragma once
// The flow of staging: the present generation of an environment, or a directory (staged_path.hpp), is copied to this
// host's own disk, by its image where that can be mounted, else file by file. And that of `conda.image_from_share`,
// which copies nothing.
#include "conda/staged.hpp"
#include "plan/host_lock.hpp"
#include "plan/say.hpp"

#include <functional>

namespace sharefs::conda {

/// Other nodes that have a file at the same path as this one is to have, or get it now (tree::fetch()).
using Upstreams = std::function<std::vector<tree::Upstream>(const std::string& file, std::uint64_t bytes)>;

/// Is told how an image came.
using Fetched = std::function<void(const tree::FetchReport&)>;

/// How what is staged comes to this host.
struct Copying {
  std::uint64_t bytes_per_second = 0; ///< 0: no limit
  std::chrono::milliseconds wait{0};  ///< for another copy that has not ended
  std::optional<sys::User> as = {};   ///< who reads the share for root, whom its server refuses (root_squash)
  std::string anew = {};              ///< what makes a damaged image anew: a hint
  Upstreams upstreams = {};
  Fetched fetched = {};
  /// One staging works on a host at a time: two would write into the same copy.
  std::function<Result<plan::HostLock>()> lock;

  [[nodiscard]] tree::Options options() const;
  [[nodiscard]] std::vector<tree::Upstream> upstreams_for(const std::string& to, std::uint64_t bytes) const;
};

struct StagingRequest {
  std::string store, name;
  std::string stage;       ///< `conda.stage`: where copies lie
  bool by_image = true;    ///< `conda.image`; false: file by file
  bool removes = false;    ///< all copies of the environment go
  bool from_share = false; ///< the image is mounted where it lies, if nothing of the environment is staged
  Copying how = {};
};

/// Why this process's user can mount no image here; empty: it can.
std::string why_no_images(sys::System& system);
/// The same of this image, which it may not be allowed to mount.
std::string why_no_mount(sys::System& system, const Image& image, std::uint32_t store_owner);
/// The directory of copies as `entry` has it, below `stage`, can be read, and made where it is missing and the command
/// `makes` it. A user makes no `stage` where others make names, too: root and they would have to do without. `command`:
/// what root runs for all; `key`: of sharefs.yaml, that says where it is. Errors: `config`: it lies on shared storage;
/// `permission`, or why it cannot be read.
Result<void> check_stage(sys::System& system, const sys::Entry& entry, const std::string& stage, bool makes,
                         const std::string& command, const std::string& key);
/// Where the directory of copies is, or an image is made, there is room for this, and 256 MiB and 1,000 files more for
/// others. `failed`: it has not; `hint`: what makes room.
Result<void> check_room(sys::System& system, const sys::Entry& directory, const tree::Measured& wanted,
                        const std::string& hint);
/// "/var/.../0003.sqfs: 259 MiB copied, 0 B there already, from gpu03"
std::string text_of(const std::string& to, const tree::FetchReport& fetched);

/// What is to be staged, as the host is now.
struct Staging {
  SharedEnvironment environment = {}; ///< whose present generation it is; of a directory empty
  std::string source = {};            ///< the generation, or the directory, without links
  tree::Measured size = {};           ///< of that, where it is known
  Image image = {};                   ///< of it, on the share
  std::string why_files = {};         ///< why its image is not what is copied; empty: it is
  StagedCopies copies = {};
  StageRequest wanted = {};
  StagePlan made = {};
  std::string nothing = {}; ///< why the plan is empty
  std::string drops = {};   ///< words of the command that takes the copies away

  [[nodiscard]] std::string path() const; ///< of the copy
};
/// Copies all of it file by file, and says what came.
Result<void> copy_tree(sys::System& system, const Copying& how, const Staging& staging, const plan::Say& say);
/// Plans what brings it here: Staging::made. `failed`: there is no room; `hint`: what makes some.
Result<void> plan_copy(sys::System& system, Staging& staging, const std::string& hint);
/// Copies, where that is planned: the image, or by `files`, once `prepare` has made ready the directory of the copies.
/// No other staging of this host works until the lock is given back.
Result<plan::HostLock> bring_copy(sys::System& system, const Copying& how, const Staging& staging,
                                  const std::function<Result<void>()>& prepare,
                                  const std::function<Result<void>()>& files, const plan::Say& say);

/// Errors: those of find_shared(); `config`: `conda.stage` lies on shared storage; `failed`: there is no room.
Result<Staging> plan_staging(sys::System& system, const StagingRequest& request, const plan::Say& say);
/// Copies, where that is planned. `busy`: a command has begun to work with a copy that was to be deleted.
Result<void> copy_staged(sys::System& system, const StagingRequest& request, const Staging& staging,
                         const plan::Say& say);

} // namespace sharefs::conda
