// Makes the steps and the diagnoses of a home by one decision for each place, so that both agree.
#include "conda/generation.hpp"
#include "conda/link.hpp"

#include "base/path.hpp"

#include <algorithm>
#include <array>

namespace sharefs::conda {

namespace {

using sys::EntryKind;
using Verb = LinkRequest::Verb;

std::string what_is_there(const Place& place) {
  switch (place.entry.kind) {
  case EntryKind::directory:
    return "a real directory";
  case EntryKind::symlink:
    return "a link to `" + place.entry.link_target + "`";
  case EntryKind::file:
    return "a file";
  default:
    return "something that is no link";
  }
}

/// Returns the command line for one home and one environment, with the option at the end.
std::string command(std::string verb, const HomeState& home, const std::string& environment,
                    const std::string& option) {
  Argv argv{"sharefs", "conda", std::move(verb)};
  argv.push_back(environment.empty() ? "--all" : environment);
  if (!home.name.starts_with('/')) {
    argv.emplace_back("--user");
    argv.push_back(home.name);
  }
  if (!option.empty())
    argv.push_back(option);
  return shell_join(argv);
}

class HomePlanner {
 public:
  HomePlanner(const HomeState& home, const LinkRequest& request, std::chrono::system_clock::time_point now)
      : m_home(home), m_request(request), m_now(now) {}

  Decision decide() {
    if (m_home.problem != HomeProblem::none)
      m_decision.found = diagnose_problem(m_home, m_request.verb);
    else if (m_request.verb == Verb::unlink)
      unlink_all();
    else
      link_all();
    m_decision.summary = m_home.problem == HomeProblem::needs_root ? HomeSummary::skipped
                         : has_errors(m_decision.found)            ? HomeSummary::blocked
                         : m_decision.plan.empty()                 ? HomeSummary::right
                                                                   : HomeSummary::pending;
    return std::move(m_decision);
  }

 private:
  void link_all() {
    const auto& entry = m_home.envs.entry;
    if (entry.kind == EntryKind::symlink && state_of(m_home.envs, m_request.store) == PlaceState::linked)
      return refuse("SF318", entry.path,
                    "the whole directory is a link to the store: each user's `conda create` acts on it, for all",
                    "remove that link first", command("unlink", m_home, "", ""));
    if (entry.kind == EntryKind::symlink)
      return refuse("SF315", entry.path,
                    "it is a symbolic link to `" + entry.link_target + "`; sharefs follows no link below a home",
                    "make it a real directory again");
    if (entry.kind != EntryKind::directory && entry.kind != EntryKind::missing)
      return refuse("SF314", entry.path, "it is not a directory, so conda has no environments there", "");
    if (entry.kind == EntryKind::missing && !m_home.environments.empty())
      add("conda looks for environments here", plan::make_directory(entry.path, 0755, m_home.actor));
    for (const auto& place : m_home.environments)
      link(place);
  }

  void link(const Place& place) {
    const auto& path = place.entry.path;
    if (!place.unusable.empty() && state_of(place, m_request.store) != PlaceState::source)
      return refuse("SF308", path,
                    "user `" + m_home.name + "` could not run Python of `" + place.target + "`: " + place.unusable,
                    place.cure.empty()
                        ? "all directories above it have to let its users through, and its files have to be readable"
                        : place.cure);
    switch (state_of(place, m_request.store)) {
    case PlaceState::linked:
      return;
    case PlaceState::source:
      return note("SF317", path, "it is the shared directory itself: nothing to link");
    case PlaceState::older:
      return add("it leads to another place", plan::Link{path, place.entry.link_target, place.target, m_home.actor});
    case PlaceState::occupied:
      if (!m_request.backup)
        return leave_occupied(place);
      add("moved aside, `sharefs conda unlink` puts it back",
          plan::Rename{path, backup_name(path, m_now), m_home.actor});
      break;
    case PlaceState::free:
      break;
    }
    add("shared environment `" + place.environment + "`", plan::make_link(path, place.target, m_home.actor));
  }

  void leave_occupied(const Place& place) {
    const auto& path = place.entry.path;
    const auto in_the_way = what_is_there(place) + " is in the way";
    if (!place.unmounted.empty())
      return refuse(
          "SF316", path, in_the_way + ", and share `" + place.unmounted + "` that it leads into is not mounted",
          "mount the share, so that the link can be checked", "sharefs mount " + shell_quote(place.unmounted));
    refuse("SF316", path, in_the_way,
           "`--backup` moves it aside as `" + base_name(path) + ".sharefs-backup-...` and makes the link",
           command("link", m_home, place.environment, "--backup"));
  }

  void unlink_all() {
    const auto& envs = m_home.envs;
    const bool is_link = envs.entry.kind == EntryKind::symlink;
    if (is_link && !m_request.all && state_of(envs, m_request.store) == PlaceState::linked)
      return refuse("SF318", envs.entry.path, "left alone: the whole directory is one link to the store",
                    "only `--all` removes it", command("unlink", m_home, "", ""));
    if (is_link || (envs.entry.kind == EntryKind::missing && !envs.backup.empty() && m_request.all))
      return unlink(envs);
    for (const auto& place : m_home.environments)
      unlink(place);
  }

  void unlink(const Place& place) {
    const auto& path = place.entry.path;
    const auto now = state_of(place, m_request.store);
    if (now == PlaceState::linked)
      add("leads to the store", plan::remove_link(path, place.entry.link_target, m_home.actor));
    else if (now != PlaceState::free)
      return note("SF319", path,
                  "left alone: it is " + what_is_there(place) + ", not a link to `" + place.target + "`");
    if (!place.backup.empty())
      add("what was moved aside for the link",
          plan::Rename{join_path(parent_path(path), place.backup), path, m_home.actor});
  }

  void add(std::string why, plan::Action action) {
    m_decision.plan.add("home " + m_home.name, std::move(why), std::move(action));
  }
  void refuse(std::string code, std::string path, std::string message, std::string hint, std::string fix = {}) {
    m_decision.found.push_back(
        {Severity::error, std::move(code), std::move(path), std::move(message), std::move(hint), std::move(fix)});
  }
  void note(std::string code, std::string path, std::string message) {
    m_decision.found.push_back({Severity::info, std::move(code), std::move(path), std::move(message), "", ""});
  }

  const HomeState& m_home;
  const LinkRequest& m_request;
  std::chrono::system_clock::time_point m_now;
  Decision m_decision;
};

} // namespace

Decision decide(const HomeState& home, const LinkRequest& request, std::chrono::system_clock::time_point now) {
  return HomePlanner(home, request, now).decide();
}

HomeSummary summarize(const HomeState& home, const LinkRequest& request) {
  return decide(home, request, {}).summary;
}

plan::Plan plan(const LinkState& state, const LinkRequest& request) {
  plan::Plan whole;
  if (state.store && !is_usable(*state.store))
    return whole;
  for (const auto& home : state.homes)
    std::ranges::move(decide(home, request, state.now).plan.steps, std::back_inserter(whole.steps));
  return whole;
}

PlaceState state_of(const Place& place, const std::string& store) {
  if (place.entry.kind == EntryKind::missing)
    return PlaceState::free;
  if (place.entry.kind != EntryKind::symlink)
    return place.is_source ? PlaceState::source : PlaceState::occupied;
  const auto leads_to = normalize_path(place.entry.link_target, parent_path(place.entry.path));
  if (leads_to == place.target)
    return PlaceState::linked;
  return place.dangling || is_under(leads_to, store) ? PlaceState::older : PlaceState::occupied;
}

const char* to_string(HomeSummary summary) {
  constexpr std::array<const char*, 4> k_names{"right", "pending", "blocked", "skipped"}; // in the order of the enum
  return k_names.at(static_cast<std::size_t>(summary));
}

const char* to_string(PlaceState state) {
  constexpr std::array<const char*, 5> k_names{"free", "linked", "older", "source", "occupied"};
  return k_names.at(static_cast<std::size_t>(state));
}

} // namespace sharefs::conda
