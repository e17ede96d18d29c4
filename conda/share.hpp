#pragma once
// An environment of a user becomes generation 1 of a shared one, and its directory a link to that.
//   source_at, find_source       where it lies
//   probe_worker                 who may do what
//   preflight                    what stands in the way (SF519 to SF526), with what a look at all its files has found
//   prepare_sharing, make_shared_copy   the flow: what stands in the way, then a copy in the store that is generation 1
//   plan_share                   the steps that follow the copy: what others see of it
#include "conda/guard_wheel.hpp"
#include "conda/link.hpp"
#include "conda/make_generation.hpp"

namespace sharefs::conda {

/// A user's environment.
struct Source {
  std::string path; ///< absolute; no link is followed below the home
  plan::Actor actor;
  sys::Entry entry;   ///< at `path`; where an exchange was cut off (see plan::ExchangeForLink), of the directory
  std::string backup; ///< name of the newest original beside it; empty: none
};

/// The environment at `path`, or that has lain there before an exchange that was cut off. `target`: STORE/ENV.
Result<Source> source_at(sys::System& system, const std::string& path, const std::string& target);
/// The one directory of that name in the homes. `usage`: there are several; `not_found`.
Result<Source> find_source(sys::System& system, const std::string& store, const std::string& name,
                           const std::vector<Homes>& homes);

/// Whether a user (nullopt: this process's) can read all of the source and write in the store.
struct Worker {
  std::string problem;         ///< empty: none
  bool no_environment = false; ///< the source has no directory conda-meta
};
Worker probe_worker(sys::System& system, const Source& source, const std::string& store,
                    const std::optional<sys::User>& as);

struct Preflight {
  EnvironmentState state;          ///< of the source, with STORE/ENV for a prefix
  bool base = false;               ///< holds an installation of conda, and other environments
  std::vector<std::string> users;  ///< "python3.11 (process 12)"
  std::optional<sys::Space> space; ///< of the store
  tree::Measured copied;           ///< what a copy that was cut off has already
};
/// Reads `base` and `users`. `active`: $CONDA_PREFIX of who asks.
Preflight probe_preflight(sys::System& system, const Source& source, const std::string& active);
Diagnoses preflight(const Preflight& found);

/// What of the environment may be copied (tree::Options::admit): files of its owner, as SF531 and SF532 say, also of
/// what was put there since. Refused by name.
tree::Admit admit_copied(const EnvironmentState& of);
/// What of it may get the mode `wanted` (of directories) when it is protected: of other users nothing that gets wider.
tree::Admit admit_opened(const EnvironmentState& of, std::uint32_t wanted);

/// SF529: who owns .generations or .generations/ENV (`places`, not followed) could put another environment there,
/// though only the owner of a name can replace it in the store itself. `self`: this process's user.
Diagnoses diagnose_places(const sys::Entry& store, const std::vector<sys::Entry>& places, std::uint32_t self);

/// What is still to be done.
enum class ShareStep { copy, exchange, nothing };
/// Errors: `conflict`.
Result<ShareStep> next_step(const SharedEnvironment& shared, const Source& source);

/// A file in the copy, in which others cannot write: of which directory it is one. By it a copy that was cut off is
/// known for ours, and goes on; a name says nothing where others may rename. It stays in the generation.
inline constexpr const char* k_copy_mark = ".sharefs-copy";
std::string copy_mark(const Source& source);
/// The entry of a directory, not followed, and that of its mark with the content.
bool is_copy_of(const Source& source, const sys::Entry& directory, const sys::Entry& mark, std::uint32_t self);

/// The directory of the shared environments, as the one who looks sees it.
struct StorePlace {
  std::string path;
  sys::Entry entry;    ///< or, while there is none, the directory in which it is made
  bool is_new = false; ///< it is made with the first environment
};

struct Sharing {
  StorePlace store;
  SharedEnvironment shared;
  Source source;
  EnvironmentState state = {}; ///< of the source; only where it is copied
  ShareStep step = ShareStep::copy;
  std::chrono::system_clock::time_point now = {};
  std::string hidden = {};            ///< name of the copy until it is complete: new-0001.XXXXXX
  Diagnoses found = {};               ///< errors: it cannot be shared
  std::uint64_t bytes_per_second = 0; ///< of the copy; 0: no limit
  bool protect = true;
  GuardFiles guard = {}; ///< that are added
  bool no_guard = false; ///< nor are they by later updates
  LeaseWish lease = {};
  ImageWish image = {};
  tree::CopyReport copied = {}; ///< when it is done
};
/// Reads all of the environment, and what is in its way: Sharing::found. `active`: $CONDA_PREFIX of who asks. Errors:
/// `permission`: others own the place of the generations; those of next_step().
Result<Sharing> prepare_sharing(sys::System& system, StorePlace store, const std::string& name, Source source,
                                const std::string& active, const plan::Say& say);
/// Where the source is kept.
Original original_of(const Sharing& sharing);
/// The steps that follow the copy, whose record is written by then.
plan::Plan plan_share(const Sharing& sharing);

/// What holds the environment while the steps of the plan are done.
struct Shared {
  std::optional<Held> held;          ///< of ShareStep::exchange
  std::optional<NewGeneration> made; ///< of ShareStep::copy
};
/// Makes the place in the store, and the copy, if the step is one. What was cut off is gone on with.
Result<Shared> make_shared_copy(sys::System& system, Sharing& sharing, const plan::Say& say);

/// What to do with a plain directory STORE/ENV.
std::string hint_to_share(const SharedEnvironment& shared);

/// Modes of the directories in a generation: as open as the store, writable for nobody with `protect`.
std::uint32_t generation_mode(std::uint32_t store_mode, bool protect);

} // namespace sharefs::conda
