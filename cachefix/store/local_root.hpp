#pragma once
// Finds the directory on this host's own disks that holds this user's caches, and makes the directories in it.
#include "base/diagnosis.hpp"
#include "plan/plan.hpp"
#include "sys/system.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace sharefs::cachefix {

/// The settings caches.local and caches.min_free, and for whom they are used.
struct LocalChoice {
  std::vector<std::string> directories; ///< may hold variables: `$SLURM_TMPDIR/x`
  std::uint64_t min_free_bytes = 1ULL << 30U;
  std::vector<std::string> environment = {}; ///< NAME=value: the values of those variables
  std::optional<sys::User> as = {};          ///< root checks with the rights of this user; nullopt: with its own
};

/// Returns an entry of caches.local, normalized, with the values of `$NAME` and `${NAME}`. A variable at the beginning
/// must hold an absolute path, others a part of a name. Values may only have the characters [A-Za-z0-9_./-], because
/// launchers split, quote and expand the words that hold a cache's path. Pure. Error `config` if a variable is not set
/// or has another value.
Result<std::string> expand_directory(const std::string& directory, const std::vector<std::string>& environment);

/// A directory with fewer free inodes is not used: a dataset cache has few large files, but a cache of modules and
/// kernels many small ones.
inline constexpr std::uint64_t k_least_free_inodes = 10'000;

/// The directory of this user's node-local caches.
struct LocalRoot {
  std::string directory = {};  ///< LOCAL/USER or /var/tmp/sharefs-USER; empty: no directory can be used
  std::string problem = {};    ///< why no disk that caches.local names is used; empty: one is
  std::string hint = {};       ///< how to mend the problem
  bool memory = false;         ///< it is a tmpfs that nobody named: files there take memory of this host
  bool taken = false;          ///< another user has this user's name in one of them; that must not stop a launch
  std::string noexec = {};     ///< why programs cannot map the code that they compile there; empty: they can
  std::string for_code = {};   ///< with `noexec`: another directory in which they can; empty: there is none
  bool code_in_memory = false; ///< `for_code` is a tmpfs that nobody named
  /// Returns the directory for data, or for compiled code; empty: none can be used.
  [[nodiscard]] const std::string& place(bool holds_code) const {
    return holds_code && !noexec.empty() ? for_code : directory;
  }
  friend bool operator==(const LocalRoot&, const LocalRoot&) = default;
};

/// Returns SF405: no directory can be used, or none can hold compiled code.
Diagnosis no_place(const LocalRoot& root, Severity severity);
/// Reports SF405, with `severity`, if no directory can hold compiled code, and SF414 if it is not the one of data.
Diagnoses diagnose_code(const LocalRoot& root, Severity severity);
/// Reports SF405, with `severity`, if no directory can be used, and SF414 if it is no disk that caches.local names.
Diagnoses diagnose(const LocalRoot& root, Severity severity);

/// Finds the first of the configured directories that is not shared, that no other user could replace, and that has
/// enough free bytes and inodes. If there is none, it is /var/tmp/sharefs-USER, if that has room. A tmpfs is used last,
/// unless caches.local names its path.
LocalRoot find_local_root(sys::System& system, const LocalChoice& choice, const sys::Identity& identity);

/// Returns all directories of this user for caches that exist, in the configured directories and in /var/tmp.
std::vector<std::string> own_directories(sys::System& system, const LocalChoice& choice, const sys::Identity& identity);

/// Plans the steps that make the configured directories with mode 1777, as /tmp has it, so that each user may make a
/// directory of their own there. A directory of root gets that mode if users cannot write to it. A directory of another
/// user, or one that `kept` returns a reason for, is left with a note; a path with a variable is left without one.
/// Links of users are not followed. A link of root is right if its target is; otherwise a note names that. What is
/// `of_root` and lies in one of them is made with it, down to the first name, as root's own: otherwise a user could
/// take that name before root needs it.
plan::Plan plan_local_directories(sys::System& system, const std::vector<std::string>& directories,
                                  const std::set<std::string>& of_root,
                                  const std::function<std::string(const std::string&)>& kept);

// These functions make the directories of caches.

/// Returns the name of the node-local directory for a shared path: 12 hexadecimal digits, the same on every node and in
/// every version.
std::string cache_key(const std::string& shared_path);

/// Makes the user's own directory for caches, mode 0700. Error `permission` if it belongs to another user or others may
/// write to it, `unsupported` if file locks in it do not exclude each other.
Result<void> make_own_directory(sys::System& system, const std::string& directory);

/// Makes the directories of this map (node-local directory -> shared path) with mode 0700, and the user's own directory
/// above them. A note beside each names its shared path, for `sharefs cache list`.
Result<void> make_caches(sys::System& system, const std::map<std::string, std::string>& directories);

} // namespace sharefs::cachefix
