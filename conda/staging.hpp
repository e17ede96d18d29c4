#pragma once
// The flow of staging: the present generation of an environment, or a directory (staged_path.hpp), is copied to this
// host's own disk, by its image if that can be mounted, otherwise file by file. With `conda.image_from_share` nothing
// is copied, and the image is mounted from the share.
#include "conda/staged.hpp"
#include "plan/host_lock.hpp"
#include "plan/say.hpp"
#include "tree/survey.hpp"

#include <functional>
#include <map>

namespace sharefs::conda {

/// Returns other nodes that have, or are getting, the file that this host shall have at the same path (tree::fetch()).
using Upstreams = std::function<std::vector<tree::Upstream>(const std::string& file, std::uint64_t bytes)>;

/// Gets the report of a copy: its size, and the node from which it came.
using Fetched = std::function<void(const tree::FetchReport&)>;

/// The settings of a copy to this host.
struct CopySettings {
  /// Its limit, `wait`, `anew`, and the user who reads the share if its server refuses root.
  tree::Options copying = {};
  Upstreams upstreams = [](const std::string&, std::uint64_t) { return std::vector<tree::Upstream>{}; };
  Fetched fetched = [](const tree::FetchReport&) {};
  /// Takes the lock by which only one staging works on a host: two would write into the same copy.
  std::function<Result<plan::HostLock>()> lock;
};

struct StagingRequest {
  std::string store, name;
  std::string stage;       ///< `conda.stage`: the directory of copies
  bool by_image = true;    ///< `conda.image`; false: file by file
  bool removes = false;    ///< all copies of the environment are removed
  bool from_share = false; ///< the image is mounted from the share, if no copy of the environment is staged
  CopySettings how = {};
};

/// Returns the reason why this process's user cannot mount images here; empty if the user can.
std::string why_no_images(sys::System& system);
/// Returns the reason why this process's user cannot mount this image, which others may have written; empty if the user
/// can.
std::string why_no_mount(sys::System& system, const Image& image, std::uint32_t store_owner);
/// Returns what a user is told who wants to remove a copy that only root has: `command` removes it.
std::string only_of_root(const std::string& copy, const std::string& command);
/// Checks that the directory of copies `entry`, below `stage`, can be read, or can be made if it is missing and the
/// command `makes` it. A user must not make `stage` in a directory of all users, since root and the others could not
/// use it then. `command`: the command that root runs for all users; `key`: the key of sharefs.yaml for `stage`.
/// Errors: `config`: it lies on shared storage; `permission`, or the reason why it cannot be read.
Result<void> check_stage(sys::System& system, const sys::Entry& entry, const std::string& stage, bool makes,
                         const std::string& command, const std::string& key);
/// Checks that the file system of `directory` has room for `wanted`, and for 256 MiB and 1,000 files more. `failed`: it
/// has not; `hint`: how to make room.
Result<void> check_room(sys::System& system, const sys::Entry& directory, const tree::Measured& wanted,
                        const std::string& hint);
/// Returns "/var/.../0003.sqfs: 259 MiB copied, 0 B there already, from gpu03".
std::string text_of(const std::string& to, const tree::FetchReport& fetched);

/// A staging: its source, the copies that exist on this host, and the plan.
struct Staging {
  SharedEnvironment environment = {};      ///< the environment; empty for a directory
  std::string source = {};                 ///< path of the generation or directory, without links
  tree::Measured size = {};                ///< of the source, if it is known
  tree::Survey survey = {};                ///< of the content of a directory
  std::optional<tree::Listing> files = {}; ///< the files of a directory, if there is a trusted list of them
  Image image = {};                        ///< of the source, on the share
  std::string why_files = {};              ///< the reason why files are copied, and not the image; empty: the image is
  StagedCopies copies = {};
  StageRequest wanted = {};
  StagePlan made = {};
  std::string nothing = {}; ///< the message for an empty plan
  std::string drops = {};   ///< words of the command that removes the copies

  [[nodiscard]] std::string path() const; ///< of the copy
};
/// Sets Staging::made, the plan of the copy. `failed`: there is no room; `hint`: how to make room.
Result<void> plan_copy(sys::System& system, Staging& staging, const std::string& hint);
/// Makes the directory of copies. Returns the lock that keeps out other stagings on this host.
Result<plan::HostLock> begin_copy(sys::System& system, const CopySettings& how, const Staging& staging);
/// Copies the image, or the source file by file, and reports the numbers.
Result<void> copy_source(sys::System& system, const CopySettings& how, const Staging& staging, const plan::Say& say);

/// Plans the staging of an environment. Errors: those of find_shared(); `config`: `conda.stage` lies on shared storage;
/// `failed`: there is no room.
Result<Staging> plan_staging(sys::System& system, const StagingRequest& request, const plan::Say& say);
/// Returns those of the environments (name and `conda.stage`) whose present generation lies on a share and has no whole
/// copy of root's on this host. `readers`: users who may read the share for root.
std::vector<std::string> find_unstaged(sys::System& system, const std::string& store,
                                       const std::map<std::string, std::string>& environments,
                                       const std::vector<std::string>& readers);
/// Makes the copy if one is planned, before the steps. `busy`: a command has begun to use a copy that would be deleted;
/// `conflict`: the generation was deleted meanwhile.
Result<void> copy_staged(sys::System& system, const StagingRequest& request, const Staging& staging,
                         const plan::Say& say);

} // namespace sharefs::conda
