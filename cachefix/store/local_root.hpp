#pragma once
// Which directory on this host's own disks holds this user's caches.
#include "base/diagnosis.hpp"
#include "plan/plan.hpp"
#include "sys/system.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sharefs::cachefix {

/// caches.local and caches.min_free of the configuration.
struct LocalChoice {
  std::vector<std::string> directories; ///< may hold variables: `$SLURM_TMPDIR/x`
  std::uint64_t min_free_bytes = 1ULL << 30U;
  std::vector<std::string> environment = {}; ///< NAME=value, which those variables are taken from
  std::optional<sys::User> as = {};          ///< root asks how it is for this user, who has other rights
};

/// What a directory is for. Code is compiled there and mapped, which a mount with noexec refuses.
enum class Holds { data, code };

/// An entry of caches.local, normalized, with `$NAME` and `${NAME}` replaced. One at the beginning must be an absolute
/// path, others a part of a name. Their values are [A-Za-z0-9_./-] only: launchers split, quote and expand words, and a
/// cache's path is in them. Pure. Error `config`: one is not set, or has another value.
Result<std::string> expand_directory(const std::string& directory, const std::vector<std::string>& environment);

/// A directory with fewer free inodes is not used: a dataset cache is few large files, a cache of modules and kernels
/// is many small ones.
inline constexpr std::uint64_t k_least_free_inodes = 10'000;

/// Where this user's node-local caches are.
struct LocalRoot {
  std::string directory; ///< LOCAL/USER, or /var/tmp/sharefs-USER; empty: none can be used
  std::string problem;   ///< why no directory can be used at all, or why the one that comes first to mind cannot
  std::string hint;      ///< what to do about it
  bool memory = false;   ///< it is a tmpfs that nobody asked for: what is stored there is memory of this host
  Holds holds = Holds::data;
  bool taken = false; ///< somebody else has this user's name in one of them, which must not stop a launch
  friend bool operator==(const LocalRoot&, const LocalRoot&) = default;
};

/// SF414: not the directory that comes first to mind. SF405, with `severity`: none. Empty: it is as it should be.
Diagnoses diagnose(const LocalRoot& root, Severity severity);

/// The first of the configured directories that is not shared, that nobody else could replace, and that has room for
/// bytes and inodes; without any /var/tmp/sharefs-USER, if that has room. A tmpfs comes behind all of them, unless
/// caches.local names its path. Where code is kept nothing is mounted noexec.
LocalRoot find_local_root(sys::System& system, const LocalChoice& choice, const sys::Identity& identity,
                          Holds holds = Holds::data);

/// All directories with caches of this user that exist: of the configured ones and of /var/tmp.
std::vector<std::string> own_directories(sys::System& system, const LocalChoice& choice, const sys::Identity& identity);

/// The steps that make the configured directories, mode 1777 as /tmp has it, so that each user may make a directory of
/// their own there. One of root's that is not open to users gets that mode; one of somebody else, one with a variable
/// in its path, and one that `kept` has a reason for is left, and noted. No link of a user is followed.
plan::Plan plan_local_directories(sys::System& system, const std::vector<std::string>& directories,
                                  const std::function<std::string(const std::string&)>& kept);

// Making the directories of caches.

/// The name of the node-local directory that stands for a shared path: 12 hexadecimal digits, the same everywhere and
/// always.
std::string cache_key(const std::string& shared_path);

/// The user's own directory for caches, mode 0700. Error `permission` if it is somebody else's, or others may write to
/// it; `unsupported` where file locks do not exclude each other.
Result<void> make_own_directory(sys::System& system, const std::string& directory);

/// Makes node-local directories (0700, with the user's own directory above them), each with a note of the shared path
/// that it stands for, which `sharefs cache list` shows.
Result<void> make_caches(sys::System& system, const std::map<std::string, std::string>& directories);

} // namespace sharefs::cachefix
