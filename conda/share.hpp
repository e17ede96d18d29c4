#pragma once
// A user's environment becomes generation 1 of a shared one, and its directory becomes a link to the shared one.
//   source_at, find_source       find the environment
//   probe_worker                 finds out what a user may do
//   preflight                    reports what prevents sharing (SF519 to SF526), also faults of its files
//   prepare_sharing, make_shared_copy   the flow: check everything, then make a copy in the store as generation 1
//   plan_share                   the steps after the copy, which users can see
#include "conda/link.hpp"
#include "conda/make_generation.hpp"

namespace sharefs::conda {

/// A user's environment.
struct Source {
  std::string path; ///< absolute; no link is followed below the home
  plan::Actor actor;
  sys::Entry entry; ///< at `path`; after an interrupted exchange (see plan::ExchangeForLink) that of the directory
};

/// Finds the environment at `path`, or the one that an interrupted exchange has moved away.
Result<Source> source_at(sys::System& system, const std::string& path);
/// Finds the only directory of that name in the homes. `usage`: there are several; `not_found`.
Result<Source> find_source(sys::System& system, const std::string& store, const std::string& name,
                           const std::vector<Homes>& homes);

/// Tests whether the user `as` (nullopt: this process's user) can read the source and write in the store. Returns what
/// keeps this user out, or nothing; an error if no other user could do more: there is no environment, the disk is full.
Result<std::string> probe_worker(sys::System& system, const Source& source, const std::string& store,
                                 const std::optional<sys::User>& as);

struct Preflight {
  EnvironmentState state;          ///< of the source, with STORE/ENV for a prefix
  bool base = false;               ///< it is an installation of conda with other environments in it
  std::vector<std::string> users;  ///< what uses it now: "process 12 (python3.11)"
  std::optional<sys::Space> space; ///< of the store
  tree::Measured copied;           ///< size of the part that an interrupted copy has already
  std::string fixed = {};          ///< why the directory cannot be replaced by a link; empty: it can
};
/// Reads `base`, `users` and `fixed`. `active`: $CONDA_PREFIX of the user.
Preflight probe_preflight(sys::System& system, const Source& source, const std::string& active);
/// Reports what prevents sharing the environment, and warns of what a copy changes.
Diagnoses preflight(const Preflight& found);

/// Returns the check (tree::Options::admit) that only files of the environment's owner are copied, as SF531 and SF532
/// require, even files that were added since the state was read. It names the file that it refuses.
tree::Admit admit_copied(const EnvironmentState& of);
/// Returns the check for a tree that gets the mode `wanted` (of directories): no file of another user may become
/// readable for more users.
tree::Admit admit_opened(const EnvironmentState& of, std::uint32_t wanted);

/// SF529: reports .generations or .generations/ENV (`places`, not followed) if its owner or others could put another
/// environment there, although in the store itself only the owner of a name can replace it. `self`: this process's
/// user.
Diagnoses diagnose_places(const sys::Entry& store, const std::vector<sys::Entry>& places, std::uint32_t self);

/// The next step of sharing an environment: copy it, exchange its directory for a link, or nothing.
enum class ShareStep { copy, exchange, nothing };
/// Returns the next step. `conflict`: something else has the environment's name in the store.
Result<ShareStep> next_step(const SharedEnvironment& shared, const Source& source);

/// The mark of a copy: a file in it that identifies the source. By it sharefs knows an interrupted copy of its own, and
/// continues it; a name would not show that, where others may rename. Others cannot write in the copy. The mark stays
/// in the generation.
inline constexpr const char* k_copy_mark = ".sharefs-copy";

/// The directory of the shared environments, as the working user sees it.
struct StorePlace {
  std::string path;
  sys::Entry entry;                 ///< of the store; if `is_new` that of the directory in which it will be made
  bool is_new = false;              ///< it does not exist, and is made with the first environment
  std::optional<sys::User> by = {}; ///< the user as whom root has read it
};

struct Sharing {
  StorePlace store;
  SharedEnvironment shared;
  Source source;
  EnvironmentState state = {}; ///< of the source; only read for ShareStep::copy
  ShareStep step = ShareStep::copy;
  std::chrono::system_clock::time_point now = {};
  std::string hidden = {};            ///< name of the copy until it is complete: new-0001.XXXXXX
  Diagnoses found = {};               ///< if one is an error, the environment cannot be shared
  std::uint64_t bytes_per_second = 0; ///< limit of the copy; 0: none
  bool no_guard = false;              ///< later updates do not add the guard either
  GenerationSettings settings = {};
  tree::CopyReport copied = {}; ///< set when the copy is complete
};
/// Reads all of the environment and sets Sharing::found. `active`: $CONDA_PREFIX of the user. Errors: `permission`:
/// others own the directory of the generations; those of next_step().
Result<Sharing> prepare_sharing(sys::System& system, StorePlace store, const std::string& name, Source source,
                                const std::string& active, const plan::Say& say);
/// Error `conflict`: another environment has the name; `since`: what has become of the source since, or nothing.
tl::unexpected<Error> taken(const SharedEnvironment& shared, const Source& source, const std::string& since);
/// Returns the original, with the path where it will be kept.
Original original_of(const Sharing& sharing);
/// Returns the steps that follow the copy; its record is written before them.
plan::Plan plan_share(const Sharing& sharing);

/// Makes the directories in the store, and for ShareStep::copy the copy. Continues a copy that was interrupted. The
/// result holds the lease while the steps of the plan are done.
Result<NewGeneration> make_shared_copy(sys::System& system, Sharing& sharing, const plan::Say& say);

/// Returns a hint for a plain directory STORE/ENV: how to share it.
std::string hint_to_share(const SharedEnvironment& shared);

/// Returns the mode of directories in a generation: readable for the same users as the store, and with `protect` not
/// writable.
std::uint32_t generation_mode(std::uint32_t store_mode, bool protect);

} // namespace sharefs::conda
