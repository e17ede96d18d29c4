#include "conda/generation.hpp"
#include "conda/homes.hpp"
#include "conda/link.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "sys/refusal.hpp"

#include <algorithm>
#include <cerrno>
#include <map>
#include <set>

namespace sharefs::conda {

namespace {

using sys::Entry;
using sys::EntryKind;

HomeProblem problem_of(const Entry& entry, bool is_home) {
  if (entry.hung())
    return HomeProblem::no_answer;
  switch (entry.kind) {
  case EntryKind::missing:
    return is_home ? HomeProblem::no_home : HomeProblem::no_installation;
  case EntryKind::directory:
    return entry.error_number == 0 ? HomeProblem::none : HomeProblem::unreadable;
  case EntryKind::symlink:
    return is_home ? HomeProblem::no_home : HomeProblem::link_on_the_way;
  case EntryKind::unknown:
    return HomeProblem::unreadable;
  default:
    return is_home ? HomeProblem::no_home : HomeProblem::not_directory;
  }
}

void set_problem(HomeState& home, HomeProblem problem, const Entry& where) {
  home.problem = problem;
  home.where = where;
}

/// Returns the reason why the user cannot start this Python of the store; empty if it starts, or if there is none.
std::string reason_to_fail(const sys::User& user, const Entry& python) {
  if (python.kind == EntryKind::unknown)
    return reason_of(python);
  const bool in_group = std::ranges::find(user.groups, python.gid) != user.groups.end();
  const auto needed = python.uid == user.uid ? 0100U : in_group ? 0010U : 0001U;
  return python.kind == EntryKind::file && user.uid != 0 && (python.mode & needed) == 0
             ? "mode " + format_mode(python.mode)
             : "";
}

/// Makes the owner of an installation for the whole host the actor of its steps, so that a link that this owner has
/// planted gives no access beyond the owner's own.
void act_as_owner(HomeState& host, const Entry& directory, const std::vector<sys::User>& users) {
  if (directory.kind != EntryKind::directory || directory.uid == 0)
    return;
  const auto known = std::ranges::find(users, directory.uid, &sys::User::uid);
  host.actor->user =
      known != users.end()
          ? *known
          : sys::User{std::to_string(directory.uid), directory.uid, directory.gid, {directory.gid}, host.conda};
}

/// Reads homes user by user, with one child for each: where root is squashed only the users themselves may read them.
/// Each takes one request, and a second one for links that do not lead into the store. Some homes may lie on a dead
/// server: a file system that gave no answer once is not asked again.
class LinkProbe {
 public:
  LinkProbe(sys::System& system, const sys::MountTable& mounts, const LinkRequest& request,
            const std::optional<StoreState>& store)
      : m_system(system), m_mounts(mounts), m_request(request), m_store(store), m_as_root(system.identity().uid == 0) {}

  /// Resolves the homes: /home/alice may be a link of the administrator, which is followed. Actions follow no link, so
  /// they have to begin at the resolved path.
  void find_homes(std::vector<HomeState>& homes, const std::vector<sys::User>& users) {
    std::vector<HomeState*> wanted;
    sys::EntryRequest request;
    for (auto& home : homes)
      if (home.problem == HomeProblem::none) {
        wanted.push_back(&home);
        request.queries.push_back({.path = home.actor->beneath, .follow = true, .links = sys::Links::trusted});
      }
    const auto found = m_system.entries(request);
    note_hung(found);
    for (std::size_t index = 0; index < found.size(); ++index) {
      auto& home = *wanted[index];
      if (found[index].hung())
        set_problem(home, HomeProblem::no_answer, found[index]);
      else if (home.conda == home.actor->beneath && m_as_root)
        act_as_owner(home, found[index], users);
      else if (home.conda != home.actor->beneath && found[index].exists()) {
        if (is_under(home.conda, home.actor->beneath))
          home.conda = normalize_path(found[index].resolved + home.conda.substr(home.actor->beneath.size()));
        home.actor->beneath = found[index].resolved;
      }
    }
  }

  void read(HomeState& home) {
    auto queries = way_to_envs(home);
    const auto envs = queries.size() - 1;
    for (const auto& name : m_request.environments)
      queries.push_back({.path = join_path(queries[envs].path, name), .links = sys::Links::none});
    const auto stored = queries.size();
    // The user reads Python in the store, which shows directories and groups that keep the user out.
    if (m_request.verb == LinkRequest::Verb::link)
      for (const auto& name : m_request.environments)
        queries.push_back({.path = join_path(m_request.store, name + "/bin/python"), .follow = true});
    auto entries = read_as(home.actor->user, std::move(queries));
    for (std::size_t index = 0; index < envs; ++index)
      if (const auto problem = problem_of(entries[index], index == 0 && home.conda != home.actor->beneath);
          problem != HomeProblem::none)
        return set_problem(home, problem, entries[index]);
    if (!is_readable(home, entries[envs]))
      return;
    home.envs = {.environment = {}, .target = m_request.store, .entry = entries[envs]};
    home.envs.backup = newest_backup(entries[envs - 1].names, "envs");
    const auto kind = home.envs.entry.kind;
    if (kind == EntryKind::directory || kind == EntryKind::missing)
      for (std::size_t index = 0; index < m_request.environments.size(); ++index)
        if (!add_environment(home, m_request.environments[index], std::move(entries[envs + 1 + index])))
          return;
    for (std::size_t index = 0; index < home.environments.size() && stored + index < entries.size(); ++index)
      home.environments[index].unusable = reason_to_fail(home.actor->user, entries[stored + index]);
    if (m_request.verb == LinkRequest::Verb::link) // unlink removes only links to the store, so it need not know
      follow_links(home);
  }

 private:
  using Superblock = std::pair<unsigned, unsigned>;

  [[nodiscard]] Superblock superblock_of(const std::string& path) const {
    const auto* mount = m_mounts.owner_of(path);
    return mount == nullptr ? Superblock{} : Superblock{mount->major, mount->minor};
  }

  void note_hung(const std::vector<Entry>& entries) {
    for (const auto& entry : entries)
      if (entry.hung() && sys::may_hang(entry.fs_type))
        m_hung.try_emplace(superblock_of(entry.resolved), entry.path);
  }

  /// Returns the entries as the user sees them, in the order of the queries.
  std::vector<Entry> read_as(const sys::User& user, std::vector<sys::EntryQuery> queries) {
    std::vector<Entry> entries(queries.size());
    std::vector<std::size_t> asked;
    sys::EntryRequest request;
    if (m_as_root)
      request.as = user;
    for (std::size_t index = 0; index < queries.size(); ++index) {
      const auto hung = m_hung.empty() ? m_hung.end() : m_hung.find(superblock_of(queries[index].path));
      if (hung == m_hung.end()) {
        asked.push_back(index);
        request.queries.push_back(std::move(queries[index]));
        continue;
      }
      entries[index].path = entries[index].resolved = queries[index].path;
      entries[index].error_number = ETIMEDOUT;
      entries[index].detail = "not asked: `" + hung->second + "` on the same file system did not answer";
    }
    if (asked.empty())
      return entries;
    auto answers = m_system.entries(request);
    note_hung(answers);
    for (std::size_t turn = 0; turn < asked.size(); ++turn)
      entries[asked[turn]] = std::move(answers[turn]);
    return entries;
  }

  /// Returns queries for all directories from the home down to `envs`. No link is followed, since it may lead to a
  /// server that does not answer.
  static std::vector<sys::EntryQuery> way_to_envs(const HomeState& home) {
    auto path = home.actor->beneath;
    std::vector<sys::EntryQuery> queries{{.path = path, .links = sys::Links::none}};
    for (const auto& part : split(std::string_view(home.conda).substr(path.size()), '/'))
      if (!part.empty())
        queries.push_back({.path = path = join_path(path, part), .links = sys::Links::none});
    queries.back().list = true; // for backups of `envs`
    queries.push_back({.path = join_path(home.conda, "envs"), .list = true, .links = sys::Links::none});
    return queries;
  }

  static bool is_readable(HomeState& home, const Entry& entry) {
    const auto problem = problem_of(entry, false);
    if (problem != HomeProblem::no_answer && problem != HomeProblem::unreadable)
      return true;
    set_problem(home, problem, entry);
    return false;
  }

  bool add_environment(HomeState& home, const std::string& name, Entry entry) const {
    if (!is_readable(home, entry))
      return false;
    Place place{.environment = name, .target = join_path(m_request.store, name), .entry = std::move(entry)};
    place.backup = newest_backup(home.envs.entry.names, name);
    place.is_source = is_source(place);
    home.environments.push_back(std::move(place));
    return true;
  }

  /// True if the entry is the target of the link, also by another path: through a bind mount, or a home that is a link.
  [[nodiscard]] bool is_source(const Place& place) const {
    const auto& entry = place.entry;
    if (entry.kind != EntryKind::directory)
      return false;
    const auto is_same = [&](const Entry& stored) {
      return stored.inode != 0 && stored.inode == entry.inode && stored.device == entry.device;
    };
    if (is_under(place.target, entry.path))
      return true;
    return m_store && std::ranges::any_of(m_store->environments, [&](const StoredEnvironment& stored) {
             return stored.name == place.environment && is_same(stored.entry);
           });
  }

  /// Follows the links that lead neither to the target nor into the store, to find out whether they lead anywhere.
  void follow_links(HomeState& home) {
    std::vector<Place*> places;
    std::vector<sys::EntryQuery> queries;
    const auto collect = [&](Place& place) {
      const auto above = parent_path(place.entry.path);
      const auto& text = place.entry.link_target;
      if (place.entry.kind != EntryKind::symlink || state_of(place, m_request.store) != PlaceState::occupied ||
          leads_into_unmounted(place, normalize_path(text, above)))
        return;
      places.push_back(&place);
      queries.push_back({.path = join_path(above, text), .follow = true}); // not normalized: the kernel resolves `..`
    };
    std::ranges::for_each(home.environments, collect);
    const auto targets = queries.empty() ? std::vector<Entry>{} : read_as(home.actor->user, std::move(queries));
    for (std::size_t index = 0; index < targets.size(); ++index) // a link without an answer may lead somewhere
      places[index]->dangling =
          targets[index].kind == EntryKind::missing && !leads_into_unmounted(*places[index], targets[index].resolved);
  }

  /// True if the path lies in a share that is not mounted, which is then noted: its target exists again later.
  bool leads_into_unmounted(Place& place, const std::string& path) const {
    const auto* share = unmounted_share(path, m_request.shares, m_mounts);
    if (share != nullptr)
      place.unmounted = share->name;
    return share != nullptr;
  }

  sys::System& m_system;
  const sys::MountTable& m_mounts;
  const LinkRequest& m_request;
  const std::optional<StoreState>& m_store;
  bool m_as_root;
  std::map<Superblock, std::string> m_hung; ///< with the first path on it that gave no answer
};

HomeState home_of(sys::System& system, const std::string& conda, const sys::Identity& self, const std::string& name) {
  HomeState home;
  home.name = name;
  const auto user = system.user(name);
  if (!user) {
    home.problem = HomeProblem::unknown_user;
    home.where.detail = user.error().code == ErrorCode::not_found ? user.error().hint : user.error().message;
    return home;
  }
  home.actor = plan::Actor{*user, normalize_path(user->home)};
  home.conda = normalize_path(conda, user->home);
  home.where.path = user->home;
  if (self.uid != 0 && self.uid != user->uid)
    home.problem = HomeProblem::needs_root;
  else if (!user->home.starts_with('/'))
    home.problem = HomeProblem::no_home;
  return home;
}

/// Returns one home for an absolute path of conda: that of the user in whose home it lies, or one for the whole host.
std::vector<HomeState> one_installation(const std::string& conda, const sys::Identity& self,
                                        std::vector<HomeState> homes) {
  const auto owner = std::ranges::find_if(homes, [](const HomeState& home) {
    return home.actor && home.actor->beneath != "/" && is_under(home.conda, home.actor->beneath);
  });
  if (owner != homes.end())
    return {std::move(*owner)};
  HomeState host;
  host.name = host.conda = normalize_path(conda);
  host.actor = plan::Actor{{self.user, self.uid, self.gid, {self.gid}, self.home}, host.conda};
  return {std::move(host)};
}

/// Removes installations that another entry of `conda.homes` names already.
void remove_second_names(std::vector<HomeState>& homes) {
  std::set<std::string> known;
  std::erase_if(homes, [&](const HomeState& home) {
    return home.problem == HomeProblem::none && !known.insert(home.conda).second;
  });
}

} // namespace

Result<LinkState> probe(sys::System& system, const LinkRequest& request) {
  const auto self = system.identity();
  TRY_ASSIGN(const auto mounts, system.mounts());
  LinkState state;
  state.now = system.now();
  std::vector<sys::User> users;
  for (const auto& place : request.homes) {
    std::vector<HomeState> homes;
    for (const auto& name : place.users)
      if (homes.push_back(home_of(system, place.conda, self, name)); homes.back().actor)
        users.push_back(homes.back().actor->user);
    if (place.conda.starts_with('/'))
      homes = one_installation(place.conda, self, std::move(homes));
    std::ranges::move(homes, std::back_inserter(state.homes));
  }
  auto linked = request;
  if (request.verb == LinkRequest::Verb::link) {
    state.store = probe_store(system, mounts, request);
    if (!is_usable(*state.store))
      return state; // no link can be made, so the homes need not be read
    std::erase_if(linked.environments, [&](const std::string& name) { return is_left_out(*state.store, name); });
  }
  LinkProbe homes(system, mounts, linked, state.store);
  homes.find_homes(state.homes, users);
  remove_second_names(state.homes);
  for (auto& home : state.homes)
    if (home.problem == HomeProblem::none)
      homes.read(home);
  for (auto& home : state.homes)
    for (auto& place : home.environments)
      if (const auto refused = place.unusable.empty() || !home.actor
                                   ? std::nullopt
                                   : sys::explain_refusal(system, place.target, home.actor->user)) {
        place.unusable = refused->message;
        place.cure = refused->hint;
      }
  return state;
}

} // namespace sharefs::conda
