#include "conda/ask_homes.hpp"
#include "conda/environment_name.hpp"
#include "conda/link.hpp"

#include "base/path.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cerrno>

namespace sharefs::conda {

namespace {

using sys::PathFact;
using sys::PathKind;

constexpr std::chrono::milliseconds k_home_deadline{3000};
constexpr int k_home_links = 4; ///< a home that is a link to a link to ...

/// Looks into one home: each question is a child of its own that acts as the home's user.
class HomeReader {
 public:
  HomeReader(sys::System& system, const LinkRequest& request, const std::optional<StoreState>& store, bool as_root)
      : m_system(system), m_request(request), m_store(store), m_as_root(as_root) {}

  void read(HomeState& home) const {
    if (home.problem == HomeProblem::none && read_installation(home))
      read_places(home);
  }

 private:
  /// The home and each directory on the way down to `envs`; false if there is nothing to look at below.
  bool read_installation(HomeState& home) const {
    for (int hops = 0; hops < k_home_links; ++hops) {
      const auto facts = ask(home, way_to_envs(home));
      if (!facts)
        return false;
      const auto& first = facts->front();
      if (first.kind != PathKind::symlink || home.conda == home.actor->beneath)
        return judge_way(home, *facts);
      // The home itself is the administrator's: /home/alice may be a link to where it is. Actions follow no link, so
      // they have to begin there.
      move_home(home, normalize_path(first.link_target, parent_path(first.path)));
    }
    home.problem = HomeProblem::no_home;
    home.where = home.actor->beneath;
    return false;
  }

  [[nodiscard]] static std::vector<sys::PathQuery> way_to_envs(const HomeState& home) {
    auto path = home.actor->beneath;
    std::vector<sys::PathQuery> queries{{.path = path}};
    for (const auto& part : split(std::string_view(home.conda).substr(path.size()), '/'))
      if (!part.empty())
        queries.push_back({.path = path = join_path(path, part)});
    queries.back().list = true; // for backups of `envs`
    queries.push_back({.path = home.envs.path, .list = true});
    return queries;
  }

  void move_home(HomeState& home, const std::string& to) const {
    home.conda = normalize_path(to + home.conda.substr(home.actor->beneath.size()));
    home.envs.path = join_path(home.conda, "envs");
    home.actor->beneath = to;
  }

  bool judge_way(HomeState& home, const std::vector<PathFact>& facts) const {
    const auto envs = std::prev(facts.end());
    for (auto fact = facts.begin(); fact != envs; ++fact)
      if (const auto problem = problem_of(*fact, fact == facts.begin() && home.conda != home.actor->beneath);
          problem != HomeProblem::none)
        return stop(home, problem, *fact);
    if (envs->kind == PathKind::unknown || (envs->kind == PathKind::directory && envs->error_number != 0))
      return stop(home, HomeProblem::unreadable, *envs);
    note(home.envs, *envs, std::prev(envs)->entries);
    home.envs.empty = envs->entries.empty();
    const bool by_name = m_request.style == LinkStyle::each || m_request.verb == LinkRequest::Verb::unlink;
    if (!by_name || (envs->kind != PathKind::directory && envs->kind != PathKind::missing))
      return true;
    for (const auto& name : m_request.environments) {
      Place place{
          .environment = name, .path = join_path(home.envs.path, name), .target = join_path(m_request.store, name)};
      place.backup = newest_backup(envs->entries, name);
      if (std::ranges::binary_search(envs->entries, name))
        place.kind = PathKind::unknown; // to be asked
      home.environments.push_back(std::move(place));
    }
    return true;
  }

  /// What lies at the places that are taken, then whether strange links lead anywhere (that may hang: a question
  /// apart).
  void read_places(HomeState& home) const {
    std::vector<Place*> taken;
    std::vector<sys::PathQuery> queries;
    for (auto& place : home.environments)
      if (place.kind == PathKind::unknown) {
        taken.push_back(&place);
        queries.push_back({.path = place.path});
      }
    if (!queries.empty()) {
      const auto facts = ask(home, std::move(queries));
      if (!facts)
        return;
      for (std::size_t index = 0; index < taken.size(); ++index) {
        if (facts->at(index).kind == PathKind::unknown) {
          stop(home, HomeProblem::unreadable, facts->at(index));
          return;
        }
        note(*taken[index], facts->at(index), {});
      }
    }
    if (m_request.verb == LinkRequest::Verb::unlink)
      return; // removes only what leads to the store
    if (m_request.style == LinkStyle::whole)
      follow(home, home.envs);
    for (auto* place : taken)
      follow(home, *place);
  }

  void follow(const HomeState& home, Place& place) const {
    if (place.kind != PathKind::symlink || standing(place, m_request.store) != Standing::occupied)
      return;
    const auto target = join_path(parent_path(place.path), place.link_text); // not normalized: `..` is the kernel's
    const auto facts = m_system.inspect({{{.path = target, .follow = true}}, k_home_deadline, actor(home)});
    place.dangling = facts && facts->front().kind == PathKind::missing; // no answer: it may well lead somewhere
  }

  void note(Place& place, const PathFact& fact, const std::vector<std::string>& siblings) const {
    place.kind = fact.kind;
    place.link_text = fact.link_target;
    if (place.environment.empty())
      place.backup = newest_backup(siblings, base_name(place.path));
    if (fact.kind == PathKind::directory)
      place.is_source = is_under(place.target, place.path) || is_in_store(place, fact);
  }

  /// The same directory under another name: a bind mount, or a home that is reached by a link.
  [[nodiscard]] bool is_in_store(const Place& place, const PathFact& fact) const {
    if (!m_store || fact.inode == 0)
      return false;
    if (place.environment.empty())
      return fact.device == m_store->device && fact.inode == m_store->inode;
    return std::ranges::any_of(m_store->environments, [&](const StoredEnvironment& stored) {
      return stored.name == place.environment && fact.device == stored.device && fact.inode == stored.inode;
    });
  }

  static HomeProblem problem_of(const PathFact& fact, bool is_home) {
    switch (fact.kind) {
    case PathKind::missing:
      return is_home ? HomeProblem::no_home : HomeProblem::no_installation;
    case PathKind::directory:
      return fact.error_number == 0 ? HomeProblem::none : HomeProblem::unreadable;
    case PathKind::symlink:
      return is_home ? HomeProblem::no_home : HomeProblem::link_on_the_way;
    case PathKind::unknown:
      return HomeProblem::unreadable;
    default:
      return is_home ? HomeProblem::no_home : HomeProblem::not_directory;
    }
  }

  static bool stop(HomeState& home, HomeProblem problem, const PathFact& fact) {
    home.problem = problem;
    home.where = fact.path;
    if (fact.kind == PathKind::symlink)
      home.detail = fact.link_target;
    else if (fact.error_number != 0)
      home.detail = errno_text(fact.error_number);
    return false;
  }

  [[nodiscard]] std::optional<sys::User> actor(const HomeState& home) const {
    return m_as_root ? std::optional(home.actor->user) : std::nullopt;
  }

  std::optional<std::vector<PathFact>> ask(HomeState& home, std::vector<sys::PathQuery> queries) const {
    auto facts = m_system.inspect({std::move(queries), k_home_deadline, actor(home)});
    if (facts)
      return std::move(*facts);
    home.problem = facts.error().code == ErrorCode::timeout ? HomeProblem::no_answer : HomeProblem::unreadable;
    home.where = home.conda;
    home.detail = facts.error().message;
    return std::nullopt;
  }

  sys::System& m_system;
  const LinkRequest& m_request;
  const std::optional<StoreState>& m_store;
  bool m_as_root;
};

Place envs_place(const std::string& conda, const std::string& store) {
  return {.environment = {}, .path = join_path(conda, "envs"), .target = store};
}

HomeState home_of(sys::System& system, const LinkRequest& request, const sys::Identity& self, const std::string& name) {
  HomeState home;
  home.name = name;
  const auto user = system.user(name);
  if (!user) {
    home.problem = HomeProblem::unknown_user;
    home.detail = user.error().code == ErrorCode::not_found ? user.error().hint : user.error().message;
    return home;
  }
  home.conda = normalize_path(request.conda, user->home);
  home.envs = envs_place(home.conda, request.store);
  home.actor = plan::Actor{*user, normalize_path(user->home)};
  if (self.uid != 0 && self.uid != user->uid)
    home.problem = HomeProblem::needs_root;
  else if (!user->home.starts_with('/')) {
    home.problem = HomeProblem::no_home;
    home.where = user->home;
  }
  return home;
}

/// One installation for all users of the host. Its owner does the work, so that a link which the owner planted leads
/// nowhere that the owner could not go anyway.
HomeState host_installation(sys::System& system, const LinkRequest& request, const sys::Identity& self,
                            const std::vector<HomeState>& users) {
  HomeState home;
  home.name = home.conda = normalize_path(request.conda);
  home.envs = envs_place(home.conda, request.store);
  home.actor = plan::Actor{{self.user, self.uid, self.gid, {self.gid}, self.home}, home.conda};
  if (self.uid != 0)
    return home;
  const auto facts = system.inspect({{{.path = home.conda}}, k_home_deadline, std::nullopt});
  if (!facts) {
    home.problem = facts.error().code == ErrorCode::timeout ? HomeProblem::no_answer : HomeProblem::unreadable;
    home.where = home.conda;
    home.detail = facts.error().message;
  } else if (const auto& owner = facts->front(); owner.kind == PathKind::directory && owner.uid != 0) {
    const auto known = std::ranges::find_if(
        users, [&](const HomeState& user) { return user.actor && user.actor->user.uid == owner.uid; });
    home.actor->user = known != users.end()
                           ? known->actor->user
                           : sys::User{std::to_string(owner.uid), owner.uid, owner.gid, {owner.gid}, home.conda};
  }
  return home;
}

std::vector<HomeState> homes_of(sys::System& system, const LinkRequest& request, const sys::Identity& self) {
  std::vector<HomeState> homes;
  for (const auto& user : request.users)
    homes.push_back(home_of(system, request, self, user));
  if (!request.conda.starts_with('/'))
    return homes;
  // An absolute path is one installation: of the user whose home it lies in, or of the host.
  const auto owner = std::ranges::find_if(homes, [](const HomeState& home) {
    return home.actor && home.actor->beneath != "/" && is_under(home.conda, home.actor->beneath);
  });
  if (owner != homes.end())
    return {*owner};
  return {host_installation(system, request, self, homes)};
}

void read_homes(const HomeReader& reader, const sys::MountTable& mounts, std::vector<HomeState>& homes) {
  std::vector<std::string> paths;
  for (const auto& home : homes)
    paths.push_back(home.actor && home.problem == HomeProblem::none ? home.actor->beneath : "");
  const auto ask = [&](std::size_t index) {
    reader.read(homes[index]);
    return homes[index].problem != HomeProblem::no_answer;
  };
  const auto skip = [&](std::size_t index, std::size_t asked) {
    auto& home = homes[index];
    home.problem = HomeProblem::no_answer;
    home.where = home.conda;
    home.detail = "not asked: on the same mount, the home of " + homes[asked].name + " did not answer";
  };
  ask_homes(mounts, paths, ask, skip);
}

} // namespace

Result<LinkState> probe(sys::System& system, const LinkRequest& request) {
  const auto self = system.identity();
  const auto mounts = system.mounts();
  if (!mounts)
    return fail(mounts.error());
  LinkState state;
  state.now = system.now();
  state.homes = homes_of(system, request, self);
  if (request.verb == LinkRequest::Verb::link) {
    StoreRequest wanted{request.store, request.environments, request.shares, {}};
    for (const auto& home : state.homes)
      if (home.actor)
        wanted.readers.push_back(home.actor->user);
    auto store = probe_store(system, wanted);
    if (!store)
      return fail(store.error());
    state.store = std::move(*store);
    if (has_errors(diagnose_store(*state.store)))
      return state; // nothing will be linked: the homes need not be asked
  }
  const HomeReader reader(system, request, state.store, self.uid == 0);
  read_homes(reader, *mounts, state.homes);
  return state;
}

} // namespace sharefs::conda
