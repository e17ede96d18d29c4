#include "conda/homes.hpp"
#include "conda/link.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>

namespace sharefs::conda {

namespace {

using sys::EntryKind;
using Verb = LinkRequest::Verb;

/// The diagnosis of a home in which nothing can be done. `%` stands for the reason, or for the target of a link.
struct ProblemText {
  HomeProblem problem;
  Severity severity;
  std::string_view code, message, hint;
  bool matters_to_unlink; ///< false for a home without an installation, which has no links either
};
constexpr std::array<ProblemText, 7> k_problems{{
    {HomeProblem::unknown_user, Severity::error, "SF310", "this host does not know the user",
     "correct `conda.homes`, or make the user on this host", true},
    {HomeProblem::no_answer, Severity::error, "SF312", "the home does not answer (%)", "is its server down?", true},
    {HomeProblem::unreadable, Severity::error, "SF312", "the user may not read it: %",
     "the directory has to belong to the user, who needs all permissions on it", true},
    {HomeProblem::no_home, Severity::error, "SF313", "the user has no home directory here", "are the homes mounted?",
     true},
    {HomeProblem::no_installation, Severity::error, "SF314", "there is no conda installation",
     "install conda there, or correct `conda` in `conda.homes`", false},
    {HomeProblem::not_directory, Severity::error, "SF314", "it is not a directory, so there is no conda installation",
     "correct `conda` in `conda.homes`", false},
    {HomeProblem::link_on_the_way, Severity::error, "SF315",
     "it is a symbolic link to `%`; sharefs follows no link below a home",
     "name the real directory as `conda` in `conda.homes`, or move the installation to this place", false},
}};

std::string filled(std::string_view text, const std::string& detail) {
  std::string result(text);
  if (const auto mark = result.find('%'); mark != std::string::npos)
    result.replace(mark, 1, detail);
  return result;
}

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

} // namespace

Diagnoses diagnose_problem(const HomeState& home, Verb verb) {
  const auto* row = std::ranges::find(k_problems, home.problem, &ProblemText::problem);
  if (row == k_problems.end() || (verb == Verb::unlink && !row->matters_to_unlink))
    return {};
  const auto& where = home.where;
  const auto hint =
      home.problem == HomeProblem::unknown_user && !where.detail.empty() ? where.detail : std::string(row->hint);
  const auto detail = where.kind == EntryKind::symlink ? where.link_target : reason_of(where);
  return {{row->severity, std::string(row->code), where.path.empty() ? home.name : where.path,
           filled(row->message, detail), hint, ""}};
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
    std::ranges::move(decide(home, request, state.now).found, std::back_inserter(found));
  return found;
}

} // namespace sharefs::conda
