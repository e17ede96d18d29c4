// Makes the steps and the diagnoses of a home by one decision for each place, so that both agree.
#include "conda/generation.hpp"
#include "conda/homes.hpp"
#include "conda/link.hpp"

#include "base/path.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>

namespace sharefs::conda {

namespace {

using sys::EntryKind;
using Verb = LinkRequest::Verb;

/// The diagnosis of a home in which nothing can be done. `{}` stands for the reason, or for the target of a link.
struct ProblemText {
  HomeProblem problem;
  std::string_view code, message, hint;
  bool matters_to_unlink; ///< false for a home without an installation, which has no links either
};
constexpr std::array<ProblemText, 7> k_problems{{
    {HomeProblem::unknown_user, "SF310", "this host does not know the user",
     "correct `conda.homes`, or make the user on this host", true},
    {HomeProblem::no_answer, "SF312", "the home does not answer ({})", "is its server down?", true},
    {HomeProblem::unreadable, "SF312", "the user may not read it: {}",
     "the directory has to belong to the user, who needs all permissions on it", true},
    {HomeProblem::no_home, "SF313", "the user has no home directory here", "are the homes mounted?", true},
    {HomeProblem::no_installation, "SF314", "there is no conda installation",
     "install conda there, or correct `conda` in `conda.homes`", false},
    {HomeProblem::not_directory, "SF314", "it is not a directory, so there is no conda installation",
     "correct `conda` in `conda.homes`", false},
    {HomeProblem::link_on_the_way, "SF315", "it is a symbolic link to `{}`; sharefs follows no link below a home",
     "name the real directory as `conda` in `conda.homes`, or move the installation to this place", false},
}};

/// Returns one diagnosis for all homes, because without root all homes but one have this problem.
Diagnoses left_to_root(const LinkState& state) {
  constexpr std::size_t k_named = 5;
  std::vector<std::string> names;
  for (const auto& home : state.homes)
    if (home.problem == HomeProblem::needs_root)
      names.push_back(home.name);
  if (names.empty())
    return {};
  const auto homes = names.size() == 1 ? "the home of another user is" : "the homes of other users are";
  if (names.size() > k_named) {
    const auto more = names.size() - k_named;
    names.resize(k_named);
    names.push_back(std::to_string(more) + " more");
  }
  return {{Severity::info, "SF311", join(names, ", "), std::string(homes) + " left to root",
           "run as root for all homes", ""}};
}

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

/// The steps in a home, and the diagnoses of those that cannot be done.
struct Decision {
  plan::Plan plan;
  Diagnoses found;
  HomeSummary summary = HomeSummary::right;
};

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

Diagnoses diagnose_problem(const HomeState& home, Verb verb) {
  const auto* row = std::ranges::find(k_problems, home.problem, &ProblemText::problem);
  if (row == k_problems.end() || (verb == Verb::unlink && !row->matters_to_unlink))
    return {};
  const auto& where = home.where;
  const auto hint =
      home.problem == HomeProblem::unknown_user && !where.detail.empty() ? where.detail : std::string(row->hint);
  const auto detail = where.kind == EntryKind::symlink ? where.link_target : reason_of(where);
  return {{Severity::error, std::string(row->code), where.path.empty() ? home.name : where.path,
           fmt::format(fmt::runtime(row->message), detail), hint, ""}};
}

std::vector<std::string> take_absent_homes(LinkState& state) {
  constexpr std::array k_absent{HomeProblem::unknown_user, HomeProblem::no_home, HomeProblem::no_installation};
  std::vector<std::string> absent;
  std::erase_if(state.homes, [&](const HomeState& home) {
    if (std::ranges::find(k_absent, home.problem) == k_absent.end())
      return false;
    absent.push_back(home.name + " (" + diagnose_problem(home, Verb::link).front().message + ")");
    return true;
  });
  return absent;
}

void lower_not_shared_yet(Diagnoses& found) {
  for (auto& one : found)
    if (one.code == "SF303" || one.code == "SF324")
      one.severity = Severity::info;
}

Diagnoses diagnose(const LinkState& state, const LinkRequest& request) {
  Diagnoses found;
  if (state.store)
    found = diagnose_store(*state.store);
  if (state.store && !is_usable(*state.store))
    return found;
  std::ranges::move(left_to_root(state), std::back_inserter(found));
  for (const auto& home : state.homes)
    std::ranges::move(HomePlanner(home, request, state.now).decide().found, std::back_inserter(found));
  return found;
}

HomeSummary summarize(const HomeState& home, const LinkRequest& request) {
  return HomePlanner(home, request, {}).decide().summary;
}

plan::Plan plan(const LinkState& state, const LinkRequest& request) {
  plan::Plan whole;
  if (state.store && !is_usable(*state.store))
    return whole;
  for (const auto& home : state.homes)
    std::ranges::move(HomePlanner(home, request, state.now).decide().plan.steps, std::back_inserter(whole.steps));
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
