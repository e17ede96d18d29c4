#include "conda/environment_name.hpp"
#include "conda/link.hpp"

#include "base/path.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <array>

namespace sharefs::conda {

namespace {

using sys::EntryKind;
using Verb = LinkRequest::Verb;

/// The steps of one home.
class HomeSteps {
 public:
  HomeSteps(const HomeState& home, const LinkRequest& request, std::chrono::system_clock::time_point now)
      : m_home(home), m_request(request), m_now(now) {}

  plan::Plan make() {
    if (m_home.problem != HomeProblem::none)
      return {};
    if (m_request.verb == Verb::unlink)
      unlink_all();
    else if (m_request.style == LinkStyle::whole)
      link(m_home.envs);
    else
      link_each();
    return std::move(m_plan);
  }

 private:
  void link_each() {
    const auto& envs = m_home.envs;
    if (envs.entry.kind == EntryKind::missing && !m_home.environments.empty())
      add("conda looks for environments here", plan::MakeDirectory{envs.entry.path, 0755, m_home.actor});
    for (const auto& place : m_home.environments) // none if `envs` is no directory
      link(place);
  }

  void link(const Place& place) {
    const plan::MakeLink make{place.entry.path, place.target, m_home.actor};
    switch (standing(place, m_request.store)) {
    case Standing::linked:
    case Standing::source:
      return;
    case Standing::older:
      add("it leads to another place", plan::SwapLink{place.entry.path, place.entry.link_target, place.target, m_home.actor});
      return;
    case Standing::occupied:
      if (!m_request.backup && !place.is_empty())
        return;
      add("moved aside, `sharefs conda unlink` puts it back",
          plan::Rename{place.entry.path, backup_name(place.entry.path, m_now), m_home.actor});
      break;
    case Standing::free:
      break;
    }
    add(place.environment.empty() ? "all shared environments" : "shared environment `" + place.environment + "`", make);
  }

  void unlink_all() {
    const auto& envs = m_home.envs;
    if (envs.entry.kind == EntryKind::symlink || (envs.entry.kind == EntryKind::missing && !envs.backup.empty())) {
      if (m_request.all)
        unlink(envs);
      return;
    }
    for (const auto& place : m_home.environments)
      unlink(place);
  }

  void unlink(const Place& place) {
    const auto now = standing(place, m_request.store);
    if (now == Standing::linked)
      add("leads to the store", plan::RemoveLink{place.entry.path, place.entry.link_target, m_home.actor});
    else if (now != Standing::free)
      return;
    if (!place.backup.empty())
      add("what was moved aside for the link",
          plan::Rename{join_path(parent_path(place.entry.path), place.backup), place.entry.path, m_home.actor});
  }

  void add(std::string why, plan::Action action) {
    m_plan.add("home " + m_home.name, std::move(why), std::move(action));
  }

  const HomeState& m_home;
  const LinkRequest& m_request;
  std::chrono::system_clock::time_point m_now;
  plan::Plan m_plan;
};

bool is_blocked(const Place& place, const LinkRequest& request) {
  switch (standing(place, request.store)) {
  case Standing::occupied:
    return !request.backup && !place.is_empty();
  case Standing::source:
    return place.entry.path != place.target && is_under(place.target, place.entry.path);
  default:
    return false;
  }
}

bool is_blocked(const HomeState& home, const LinkRequest& request) {
  if (request.verb == Verb::unlink) {
    // Where there is no installation there is no link either.
    constexpr std::array k_harmless{HomeProblem::no_installation, HomeProblem::not_directory,
                                    HomeProblem::link_on_the_way};
    if (home.problem != HomeProblem::none)
      return std::ranges::find(k_harmless, home.problem) == k_harmless.end();
    return !request.all && standing(home.envs, request.store) == Standing::linked;
  }
  if (home.problem != HomeProblem::none)
    return true;
  if (request.style == LinkStyle::whole)
    return is_blocked(home.envs, request);
  if (home.envs.entry.kind != EntryKind::directory && home.envs.entry.kind != EntryKind::missing)
    return true;
  return std::ranges::any_of(home.environments, [&](const Place& place) { return is_blocked(place, request); });
}

} // namespace

Result<void> check(const LinkRequest& request) {
  for (const auto& name : request.environments)
    if (auto sound = check_environment_name(name); !sound)
      return sound;
  if (!request.store.starts_with('/') || request.store == "/" || normalize_path(request.store) != request.store)
    return fail(ErrorCode::config,
                "`conda.store` has to be an absolute path below `/`, without `.`, `..` or extra slashes");
  const auto parts = split(request.conda, '/');
  if (request.conda.empty() || std::ranges::find(parts, "..") != parts.end() || normalize_path(request.conda) == "/")
    return fail(ErrorCode::config, "`conda.homes.conda` has to be a directory below each home, or an absolute path",
                "for example `conda: miniconda3`");
  if (request.users.empty() && !request.conda.starts_with('/'))
    return fail(ErrorCode::config, "`conda.homes.users` names no user",
                "list the users in whose homes the links are to be made");
  return {};
}

Standing standing(const Place& place, const std::string& store) {
  if (place.entry.kind == EntryKind::missing)
    return Standing::free;
  if (place.entry.kind != EntryKind::symlink)
    return place.is_source ? Standing::source : Standing::occupied;
  const auto leads_to = normalize_path(place.entry.link_target, parent_path(place.entry.path));
  if (leads_to == place.target)
    return Standing::linked;
  return place.dangling || is_under(leads_to, store) ? Standing::older : Standing::occupied;
}

plan::Plan plan(const LinkState& state, const LinkRequest& request) {
  plan::Plan whole;
  if (state.store && has_errors(diagnose_store(*state.store)))
    return whole;
  for (const auto& home : state.homes)
    std::ranges::move(HomeSteps(home, request, state.now).make().steps, std::back_inserter(whole.steps));
  return whole;
}

const char* to_string(HomeSummary summary) {
  constexpr std::array<const char*, 4> k_names{"right", "pending", "blocked", "skipped"}; // in the order of the enum
  return k_names.at(static_cast<std::size_t>(summary));
}

const char* to_string(Standing standing) {
  constexpr std::array<const char*, 5> k_names{"free", "linked", "older", "source", "occupied"};
  return k_names.at(static_cast<std::size_t>(standing));
}

HomeSummary summarize(const HomeState& home, const LinkRequest& request) {
  if (home.problem == HomeProblem::needs_root)
    return HomeSummary::skipped;
  if (is_blocked(home, request))
    return HomeSummary::blocked;
  return HomeSteps(home, request, {}).make().empty() ? HomeSummary::right : HomeSummary::pending;
}

} // namespace sharefs::conda
