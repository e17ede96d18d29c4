#include "conda/homes.hpp"
#include "conda/link.hpp"

#include "base/path.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <array>

namespace sharefs::conda {

namespace {

using sys::EntryKind;
using Verb = LinkRequest::Verb;

/// Why nothing can be done in a home. `%` stands for the reason, or for the target of a link.
struct ProblemText {
  HomeProblem problem;
  Severity severity;
  std::string_view code, message, hint;
  bool matters_to_unlink; ///< without an installation there is no link either
};
constexpr std::array<ProblemText, 7> k_problems{{
    {HomeProblem::unknown_user, Severity::error, "SF310", "this host does not know the user",
     "correct `conda.homes.users`, or make the user on this host", true},
    {HomeProblem::no_answer, Severity::error, "SF312", "the home does not answer (%)", "is its server down?", true},
    {HomeProblem::unreadable, Severity::error, "SF312", "the user may not look into it: %",
     "the directory has to belong to the user, who needs all permissions on it", true},
    {HomeProblem::no_home, Severity::error, "SF313", "the user has no home directory here", "are the homes mounted?",
     true},
    {HomeProblem::no_installation, Severity::error, "SF314", "there is no conda installation",
     "install conda there, or correct `conda.homes.conda`", false},
    {HomeProblem::not_directory, Severity::error, "SF314", "this is not a directory, so there is no conda installation",
     "correct `conda.homes.conda`", false},
    {HomeProblem::link_on_the_way, Severity::error, "SF315",
     "this is a symbolic link to `%`; sharefs follows no link below a home",
     "name the real directory in `conda.homes.conda`, or move the installation to this place", false},
}};

std::string filled(std::string_view text, const std::string& detail) {
  std::string result(text);
  if (const auto mark = result.find('%'); mark != std::string::npos)
    result.replace(mark, 1, detail);
  return result;
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

/// The command for one home and one environment; options behind.
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

/// Said once: without root it is so for all homes but one.
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

Diagnoses about_problem(const HomeState& home, Verb verb) {
  const auto* row = std::ranges::find(k_problems, home.problem, &ProblemText::problem);
  if (row == k_problems.end() || (verb == Verb::unlink && !row->matters_to_unlink))
    return {};
  const auto& where = home.where;
  const auto hint = home.problem == HomeProblem::unknown_user && !where.detail.empty() ? where.detail
                                                                                       : std::string(row->hint);
  const auto detail = where.kind == EntryKind::symlink ? where.link_target : reason_of(where);
  return {{row->severity, std::string(row->code), where.path.empty() ? home.name : where.path,
           filled(row->message, detail), hint, ""}};
}

Diagnoses about_place(const HomeState& home, const Place& place, const LinkRequest& request) {
  const auto now = standing(place, request.store);
  const auto& path = place.entry.path;
  if (now == Standing::source && path != place.target && is_under(place.target, path))
    return {{Severity::error, "SF317", path, "the store lies below it, so it cannot become a link to the store",
             "move the store out of it, or use `link: each`", ""}};
  if (now == Standing::source)
    return {{Severity::info, "SF317", path, "this is the shared directory itself: nothing to link", "", ""}};
  if (now != Standing::occupied || request.backup || place.is_empty())
    return {};
  if (!place.unmounted.empty())
    return {{Severity::error, "SF316", path,
             what_is_there(place) + " is in the way, and share `" + place.unmounted +
                 "` that it leads into is not mounted",
             "mount the share, so that the link can be checked", "sharefs mount " + shell_quote(place.unmounted)}};
  return {{Severity::error, "SF316", path, what_is_there(place) + " is in the way",
           "`--backup` moves it aside as `" + base_name(path) + ".sharefs-backup-...` and makes the link",
           command("link", home, place.environment, "--backup")}};
}

Diagnoses about_linking(const HomeState& home, const LinkRequest& request) {
  const auto& envs = home.envs;
  if (request.style == LinkStyle::whole)
    return about_place(home, envs, request);
  if (envs.entry.kind == EntryKind::symlink && standing(envs, request.store) == Standing::linked)
    return {{Severity::error, "SF318", envs.entry.path,
             "the whole directory is a link to the store, but `conda.link` is `each`",
             "remove that link first, or set `link: whole`", command("unlink", home, "", "")}};
  if (envs.entry.kind == EntryKind::symlink)
    return {{Severity::error, "SF315", envs.entry.path,
             "this is a symbolic link to `" + envs.entry.link_target + "`; sharefs follows no link below a home",
             "make it a real directory again, or set `link: whole`", ""}};
  if (envs.entry.kind != EntryKind::directory && envs.entry.kind != EntryKind::missing)
    return {
        {Severity::error, "SF314", envs.entry.path, "this is not a directory, so conda has no environments here", "", ""}};
  Diagnoses found;
  for (const auto& place : home.environments)
    std::ranges::move(about_place(home, place, request), std::back_inserter(found));
  return found;
}

Diagnosis left_alone(const Place& place) {
  return {Severity::info,
          "SF319",
          place.entry.path,
          "left alone: it is " + what_is_there(place) + ", not a link to `" + place.target + "`",
          "",
          ""};
}

Diagnoses about_unlinking(const HomeState& home, const LinkRequest& request) {
  const auto& envs = home.envs;
  if (envs.entry.kind == EntryKind::symlink) {
    if (standing(envs, request.store) != Standing::linked)
      return {left_alone(envs)};
    if (!request.all)
      return {{Severity::error, "SF318", envs.entry.path, "left alone: the whole directory is one link to the store",
               "only `--all` removes it", command("unlink", home, "", "")}};
    return {};
  }
  Diagnoses found;
  for (const auto& place : home.environments)
    if (const auto now = standing(place, request.store); now != Standing::free && now != Standing::linked)
      found.push_back(left_alone(place));
  return found;
}

Diagnosis whole_is_shared(const LinkRequest& request) {
  return {Severity::warning,
          "SF306",
          request.store,
          "with `link: whole` each user's `conda create` and `conda env remove` act on the store, for all users",
          "`link: each` shares the environments of `conda.envs` only",
          ""};
}

} // namespace

Diagnoses diagnose(const LinkState& state, const LinkRequest& request) {
  Diagnoses found;
  if (state.store)
    found = diagnose_store(*state.store);
  if (has_errors(found))
    return found;
  const auto is_pending = [&](const HomeState& home) { return summarize(home, request) == HomeSummary::pending; };
  if (request.verb == Verb::link && request.style == LinkStyle::whole && std::ranges::any_of(state.homes, is_pending))
    found.push_back(whole_is_shared(request));
  std::ranges::move(left_to_root(state), std::back_inserter(found));
  for (const auto& home : state.homes) {
    auto about = home.problem != HomeProblem::none ? about_problem(home, request.verb)
                 : request.verb == Verb::unlink    ? about_unlinking(home, request)
                                                   : about_linking(home, request);
    std::ranges::move(about, std::back_inserter(found));
  }
  return found;
}

} // namespace sharefs::conda
