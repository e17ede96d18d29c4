#pragma once
// Links from homes to the shared environments: HOME/CONDA/envs/ENV -> STORE/ENV.
//   probe    what the homes and the store hold; each home as its user, with deadlines
//   diagnose what stands in the way of the request (SF3xx)
//   plan     the steps, one group per home
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
  bool served_here = false; ///< by this host, where nothing needs to be mounted
  friend bool operator==(const Share&, const Share&) = default;
};
/// The share with the deepest mount point above the path; nullptr: none.
const Share* share_of(const std::string& path, const std::vector<Share>& shares);
/// The same if it is not mounted, and this host does not serve it: what lies at the path is not what is meant.
const Share* unmounted_share(const std::string& path, const std::vector<Share>& shares, const sys::MountTable& mounts);

struct LinkRequest {
  enum class Verb { link, unlink };
  Verb verb = Verb::link;
  std::string store;                     ///< absolute, normalized, as config checks it; so are all names
  std::vector<std::string> environments; ///< to link or unlink
  /// Every environment: unlink may also remove a link of the whole `envs`, as the manual recipe makes it.
  bool all = true;
  std::vector<Homes> homes; ///< in which; no user twice
  std::vector<Share> shares;
  bool backup = false; ///< move aside what is in the way
};

/// An environment in the store.
struct StoredEnvironment {
  std::string name;
  sys::Entry entry; ///< STORE/NAME, links followed
  sys::Entry meta;  ///< its conda-meta
};

/// The directory on the share that holds the environments. Checked before any link is made, because a link into a share
/// that is not mounted looks to conda as if the environment had been deleted.
struct StoreState {
  sys::Entry entry; ///< links followed, with its names; nothing but the path is known while `unmounted` is set
  std::optional<Share> share;       ///< that it should lie on
  bool unmounted = false;           ///< nothing is mounted at share->at
  std::optional<sys::User> by = {}; ///< as whom root has read it
  std::vector<StoredEnvironment> environments;
};

/// A store that root may not read (root_squash) is read as one of the users of the homes.
StoreState probe_store(sys::System& system, const sys::MountTable& mounts, const LinkRequest& request);

/// SF301 to SF305, SF324. Errors are what stops a link from being made: all of them, or that to an environment.
Diagnoses diagnose_store(const StoreState& state);
/// Something of it can be linked to.
bool is_usable(const StoreState& state);
/// This environment cannot.
bool is_left_out(const StoreState& state, const std::string& environment);

/// What lies where a link should be.
struct Place {
  std::string environment;    ///< empty: the `envs` directory
  std::string target;         ///< what a link there has to say
  sys::Entry entry = {};      ///< not followed; of `envs` with its names
  std::string unmounted = {}; ///< a link into this share of sharefs.yaml, which is not mounted
  bool dangling = false;      ///< a link that leads nowhere, and never into an unmounted share
  bool is_source = false;     ///< not a link, but what the link would lead to, or a directory above it
  std::string backup = {};    ///< name of the newest backup beside it; empty: none
  std::string unusable = {};  ///< why the user cannot run what the link would lead to
  std::string cure = {};      ///< of that, where it is known
};

enum class Standing {
  free,     ///< nothing there
  linked,   ///< a link to the target
  older,    ///< a link elsewhere into the store, or one that leads nowhere: it may be swapped
  source,   ///< Place::is_source
  occupied, ///< anything else: never replaced, only moved aside on request
};
const char* to_string(Standing standing); ///< "free", "linked", "older", "source", "occupied"
/// `store` is LinkRequest::store.
Standing standing(const Place& place, const std::string& store);

enum class HomeProblem {
  none,
  unknown_user,
  needs_root, ///< the home of somebody else, and we are not root
  no_answer,
  unreadable,
  no_home,
  no_installation,
  link_on_the_way, ///< sharefs follows no link below a home
  not_directory,
};

/// One installation of conda: of a user, or one for all of the host.
struct HomeState {
  std::string name;                 ///< the user, or the path of an installation outside of the homes
  std::string conda;                ///< absolute
  std::optional<plan::Actor> actor; ///< on whose behalf, and below what
  HomeProblem problem = HomeProblem::none;
  sys::Entry where; ///< what the problem is about; for an unknown user `detail` may have a hint
  Place envs;
  std::vector<Place> environments; ///< as requested; empty unless `envs` is a directory or missing
};

struct LinkState {
  std::optional<StoreState> store; ///< unlink works without it, so also when the server is dead
  std::vector<HomeState> homes;
  std::chrono::system_clock::time_point now; ///< for the names of backups
};

/// Errors: the mount table cannot be read. All that is wrong with a home stands in its HomeState.
Result<LinkState> probe(sys::System& system, const LinkRequest& request);

/// Store first (errors there: nothing can be linked), then the homes in order.
Diagnoses diagnose(const LinkState& state, const LinkRequest& request);

/// The homes that this host does not have are taken out of `state`: it does not know the user, or there is no home, or
/// no conda in it. Each with why: "bob (there is no conda installation)".
std::vector<std::string> take_absent_homes(LinkState& state);
/// What nobody has put into the store yet (SF303, SF324) is no fault of this host: it becomes information.
void forgive_not_yet(Diagnoses& found);

/// Empty if nothing is to do, or if the store cannot be used. Homes with a problem and occupied places have no steps.
plan::Plan plan(const LinkState& state, const LinkRequest& request);

/// How one home stands, for summaries and exit codes.
enum class HomeSummary {
  right,   ///< nothing to do
  pending, ///< steps to do, and nothing in their way
  blocked, ///< something of the request cannot be done: see the diagnoses
  skipped, ///< not ours to do
};
const char* to_string(HomeSummary summary);
HomeSummary summarize(const HomeState& home, const LinkRequest& request);

/// What is done in a home, and what is said about what is not done.
struct Decision {
  plan::Plan plan;
  Diagnoses found;
  HomeSummary summary = HomeSummary::right;
};
/// `now` is for the names of backups.
Decision decide(const HomeState& home, const LinkRequest& request, std::chrono::system_clock::time_point now);
/// Why nothing can be done in a home with a problem; empty where that does not matter.
Diagnoses diagnose_problem(const HomeState& home, LinkRequest::Verb verb);

} // namespace sharefs::conda
