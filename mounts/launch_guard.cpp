#include "mounts/launch_guard.hpp"

#include "base/argv.hpp"
#include "base/path.hpp"

#include <algorithm>
#include <cerrno>
#include <fmt/format.h>
#include <set>

namespace sharefs::mounts {

namespace {

bool is_path_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
         c == '-' || c == '/';
}

/// Finds the first path in a word, or in the text of a shell command, that is `target` or lies below it; empty if there
/// is none. "host:/path" does not count, because it is a path of another machine.
std::string path_below(std::string_view word, std::string_view target) {
  for (auto at = word.find(target); at != std::string_view::npos; at = word.find(target, at + 1)) {
    const auto rest = word.substr(at + target.size());
    const bool whole = rest.empty() || rest.front() == '/' || !is_path_character(rest.front());
    const bool begins = at == 0 || !is_path_character(word[at - 1]);
    const bool remote = at > 1 && word[at - 1] == ':' && word.substr(0, at).find('/') == std::string_view::npos;
    if (!whole || !begins || remote)
      continue;
    const auto end = std::ranges::find_if_not(rest, is_path_character);
    return std::string(target) + std::string(rest.begin(), end);
  }
  return {};
}

/// False for PWD and OLDPWD, which are not used to open files, and for search paths: if a mount of one is missing, a
/// program is not found, which fails at once and writes nothing.
bool may_name_files(std::string_view variable) {
  const auto name = variable.substr(0, variable.find('='));
  return !name.ends_with("PATH") && name != "PWD" && name != "OLDPWD";
}

/// Finds the first path of the launch that is `target` or lies below it.
std::string find_path_on(const Launch& launch, const std::string& target) {
  for (const auto& word : launch.words)
    if (auto path = path_below(word, target); !path.empty())
      return path;
  for (const auto& variable : launch.environment)
    if (auto path = may_name_files(variable) ? path_below(variable, target) : ""; !path.empty())
      return path;
  return {};
}

Diagnosis stopped(const std::string& path, const Expected& expected, std::string message) {
  const auto name = shell_quote(expected.name.empty() ? expected.target : expected.name);
  return {Severity::error,
          "SF418",
          path,
          std::move(message),
          fmt::format("as root: {}; --no-guard starts the command all the same",
                      expected.name.empty() ? "`mount " + name + "`" : "`sharefs recover " + name + "`"),
          ""};
}

} // namespace

Diagnoses check_launch_mounts(sys::System& system, const std::vector<Expected>& expected, const Launch& launch,
                              std::chrono::milliseconds deadline) {
  const auto table = system.mounts();
  if (!table)
    return {};
  Diagnoses found;
  std::vector<const Expected*> mounted; // mounts that the launch needs and that are in the mount table
  std::vector<std::string> paths;       // the paths that need them
  sys::EntryRequest questions{{}, deadline};
  std::set<std::string> seen;
  for (const auto& one : expected) {
    if (!seen.insert(one.target).second)
      continue;
    auto path = find_path_on(launch, one.target);
    const auto* mount = table->at(one.target);
    if (mount == nullptr && path.empty() && is_under(launch.working_directory, one.target))
      path = launch.working_directory;
    if (path.empty())
      continue;
    if (mount == nullptr) {
      found.push_back(stopped(path, one,
                              fmt::format("nothing is mounted on {} ({} wants it): the command would use this node's "
                                          "own disk",
                                          one.target, one.origin)));
    } else if (sys::may_hang(mount->fs_type) && mount->fs_type != "autofs") {
      mounted.push_back(&one);
      paths.push_back(path);
      questions.queries.push_back({.path = one.target, .space = true});
    }
  }
  const auto answers = mounted.empty() ? std::vector<sys::Entry>() : system.entries(questions);
  for (std::size_t index = 0; index < answers.size() && index < mounted.size(); ++index)
    if (const int error = answers[index].error_number; error == ESTALE || error == ETIMEDOUT)
      found.push_back(stopped(
          paths[index], *mounted[index],
          fmt::format("{} is {}", mounted[index]->target,
                      error == ESTALE ? "stale: the server no longer knows it" : "hung: " + answers[index].detail)));
  return found;
}

} // namespace sharefs::mounts
