#pragma once
// Links from homes to the shared environments: HOME/CONDA/envs/ENV -> STORE/ENV.
//   probe    reads the homes and the store; each home as its user, with deadlines
//   diagnose reports what prevents the request (SF3xx)
//   plan     makes the steps, one group per home
#include "base/diagnosis.hpp"
#include "conda/homes.hpp"
#include "plan/plan.hpp"
#include "sys/system.hpp"

#include <optional>
#include <string>
#include <vector>

namespace sharefs::conda {

/// A mount of sharefs.yaml.
struct Share {
  std::string name;
  std::string at;
  bool served_here = false; ///< this host exports it, so it need not be mounted here
  friend bool operator==(const Share&, const Share&) = default;
};
/// Returns the share with the deepest mount point above the path; nullptr if there is none.
const Share* share_of(const std::string& path, const std::vector<Share>& shares);
/// Returns that share if it is not mounted and this host does not export it: then the path leads to a local directory,
/// and not to the share.
const Share* unmounted_share(const std::string& path, const std::vector<Share>& shares, const sys::MountTable& mounts);

struct LinkRequest {
  enum class Verb { link, unlink };
  Verb verb = Verb::link;
  std::string store;                     ///< absolute, normalized, as config checks it; so are all names
  std::vector<std::string> environments; ///< to link or unlink
  /// All environments are meant, so unlink may also remove a link in place of `envs`, as the manual recipe makes it.
  bool all = true;
  std::vector<Homes> homes; ///< no user is named twice
  std::vector<Share> shares;
  bool backup = false; ///< a directory in the place of a link is moved aside
};

/// An environment in the store.
struct StoredEnvironment {
  std::string name;
  sys::Entry entry; ///< STORE/NAME, links followed
  sys::Entry meta;  ///< STORE/NAME/conda-meta
};

/// The directory on the share that holds the environments. It is checked before any link is made: if the share is not
/// mounted, conda would take an environment behind such a link for deleted.
struct StoreState {
  sys::Entry entry;                 ///< links followed, with its names; only the path is known while `unmounted` is set
  std::optional<Share> share;       ///< the share on which it should lie
  bool unmounted = false;           ///< nothing is mounted at share->at
  std::optional<sys::User> by = {}; ///< the user as whom root has read it
  std::vector<StoredEnvironment> environments;
};

/// Reads the store. If root may not read it (root_squash), it is read as one of the users of the homes.
StoreState probe_store(sys::System& system, const sys::MountTable& mounts, const LinkRequest& request);

/// SF301 to SF305, SF324. An error prevents either all links, or the link to one environment.
Diagnoses diagnose_store(const StoreState& state);
/// True if links to at least one environment can be made.
bool is_usable(const StoreState& state);
/// True if no link to this environment can be made.
bool is_left_out(const StoreState& state, const std::string& environment);

/// The entry at the path of a link.
struct Place {
  std::string environment;    ///< empty: the place is the `envs` directory
  std::string target;         ///< the text that a link here shall have
  sys::Entry entry = {};      ///< not followed; that of `envs` has its names
  std::string unmounted = {}; ///< the entry is a link into this share of sharefs.yaml, which is not mounted
  bool dangling = false;      ///< the entry is a link that leads nowhere, but not into an unmounted share
  bool is_source = false;     ///< the entry is the directory to which the link would lead, or one above it
  std::string backup = {};    ///< name of the newest backup beside it; empty: none
  std::string unusable = {};  ///< the reason why the user cannot run the environment; empty: none
  std::string cure = {};      ///< a hint for `unusable`, where one is known
};

enum class PlaceState {
  free,     ///< there is nothing
  linked,   ///< it is a link to the target
  older,    ///< it is a link to another place in the store, or to nowhere, and may be replaced
  source,   ///< see Place::is_source
  occupied, ///< anything else; it is never replaced, only moved aside on request
};
const char* to_string(PlaceState state); ///< "free", "linked", "older", "source", "occupied"
/// `store` is LinkRequest::store.
PlaceState state_of(const Place& place, const std::string& store);

enum class HomeProblem {
  none,
  unknown_user,
  needs_root, ///< it is another user's home, and this process is not root
  no_answer,
  unreadable,
  no_home,
  no_installation,
  link_on_the_way, ///< sharefs follows no link below a home
  not_directory,
};

/// One installation of conda, of a user or for the whole host.
struct HomeState {
  std::string name;                 ///< the user, or the path of an installation outside of the homes
  std::string conda;                ///< absolute
  std::optional<plan::Actor> actor; ///< the user in whose name steps are done, and the directory that holds them
  HomeProblem problem = HomeProblem::none;
  sys::Entry where; ///< the entry that has the problem; for an unknown user `detail` may have a hint
  Place envs;
  std::vector<Place> environments; ///< of the request; empty unless `envs` is a directory or missing
};

struct LinkState {
  std::optional<StoreState> store; ///< not set for unlink, which so works even when the server is dead
  std::vector<HomeState> homes;
  std::chrono::system_clock::time_point now; ///< for the names of backups
};

/// Fails if the mount table cannot be read. Problems of a home are in its HomeState.
Result<LinkState> probe(sys::System& system, const LinkRequest& request);

/// Returns the diagnoses of the store, then of the homes in order; only those of the store if no link can be made.
Diagnoses diagnose(const LinkState& state, const LinkRequest& request);

/// Takes homes out of `state` that this host does not have: it does not know the user, or there is no home, or no conda
/// in it. Returns them with the reason: "bob (there is no conda installation)".
std::vector<std::string> take_absent_homes(LinkState& state);
/// Lowers SF303 and SF324 to information: it is no fault of this host that nobody has put an environment into the
/// store.
void lower_not_shared_yet(Diagnoses& found);

/// Returns the steps; none if there is nothing to do, or if the store cannot be used. Homes with a problem and occupied
/// places get no steps.
plan::Plan plan(const LinkState& state, const LinkRequest& request);

/// The state of one home, for summaries and exit codes.
enum class HomeSummary {
  right,   ///< there is nothing to do
  pending, ///< there are steps to do, and no errors
  blocked, ///< a part of the request cannot be done; the diagnoses say why
  skipped, ///< only root can do it
};
const char* to_string(HomeSummary summary);
HomeSummary summarize(const HomeState& home, const LinkRequest& request);

/// Explains why nothing can be done in a home with a problem; empty if the problem does not matter for this verb.
Diagnoses diagnose_problem(const HomeState& home, LinkRequest::Verb verb);

} // namespace sharefs::conda
