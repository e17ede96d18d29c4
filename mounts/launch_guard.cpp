#include "mounts/launch_guard.hpp"

#include "base/argv.hpp"
#include "base/path.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fmt/format.h>
#include <set>

namespace sharefs::mounts {

namespace {

constexpr const char* k_fstab = "/etc/fstab";
constexpr const char* k_units = "/etc/systemd/system";
constexpr std::size_t k_most_unit_bytes = 64U << 10U, k_most_fstab_bytes = 16U << 20U;

bool is_of_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
         c == '-' || c == '/';
}

/// The first path in a word, or in the text of a shell command, that is `target` or lies below; empty if there is none.
/// Not of "host:/path", which is another machine's.
std::string path_below(std::string_view word, std::string_view target) {
  for (auto at = word.find(target); at != std::string_view::npos; at = word.find(target, at + 1)) {
    const auto rest = word.substr(at + target.size());
    const bool whole = rest.empty() || rest.front() == '/' || !is_of_name(rest.front());
    const bool begins = at == 0 || !is_of_name(word[at - 1]);
    const bool remote = at > 1 && word[at - 1] == ':' && word.substr(0, at).find('/') == std::string_view::npos;
    if (!whole || !begins || remote)
      continue;
    const auto end = std::ranges::find_if_not(rest, is_of_name);
    return std::string(target) + std::string(rest.begin(), end);
  }
  return {};
}

/// PWD and OLDPWD only remember; a program that is not found in a search path fails at once and writes nothing.
bool counts(std::string_view variable) {
  const auto name = variable.substr(0, variable.find('='));
  return !name.ends_with("PATH") && name != "PWD" && name != "OLDPWD";
}

std::string path_on(const Launch& launch, const std::string& target) {
  for (const auto& word : launch.words)
    if (auto path = path_below(word, target); !path.empty())
      return path;
  for (const auto& variable : launch.environment)
    if (auto path = counts(variable) ? path_below(variable, target) : ""; !path.empty())
      return path;
  return {};
}

/// systemd.unit(5): `-` stands for `/`, `\xNN` for a byte.
std::string unescaped(std::string_view unit) {
  std::string path = "/";
  for (std::size_t i = 0; i < unit.size(); ++i) {
    unsigned byte = 0;
    const bool escape = unit.substr(i, 2) == "\\x" && i + 4 <= unit.size() &&
                        std::from_chars(unit.data() + i + 2, unit.data() + i + 4, byte, 16).ptr == unit.data() + i + 4;
    path += escape ? static_cast<char>(byte) : unit[i] == '-' ? '/' : unit[i];
    i += escape ? 3 : 0;
  }
  return path;
}

/// systemd.mount(5). A masked unit is a link to /dev/null: without text.
bool is_network_unit(std::string_view text) {
  bool remote = false;
  for (const auto& line : split_lines(text)) {
    const auto setting = trim(line);
    if (setting.starts_with("Type="))
      return sys::is_shared_fs_type(trim(setting.substr(5)));
    remote = remote || (setting.starts_with("What=") && setting.find(":/") != std::string_view::npos);
  }
  return remote;
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

std::vector<Expected> fstab_mounts(std::string_view text) {
  std::vector<Expected> found;
  std::size_t number = 0;
  for (const auto& line : split_lines(text)) {
    ++number;
    const auto fields = split_words(line);
    if (fields.size() < 4 || fields[0].starts_with('#') || !fields[1].starts_with('/') || fields[1] == "/")
      continue;
    const auto options = split(fields[3], ',');
    if (sys::is_shared_fs_type(fields[2]) && std::ranges::count(options, "noauto") == 0)
      found.push_back({normalize_path(decode_octal(fields[1])), "", fmt::format("{}:{}", k_fstab, number)});
  }
  return found;
}

std::vector<Expected> unit_mounts(const std::vector<std::string>& names, const std::string& directory) {
  constexpr std::string_view k_suffix = ".mount";
  std::vector<Expected> found;
  for (const auto& name : names)
    if (name.ends_with(k_suffix) && name != "-.mount")
      found.push_back({normalize_path(unescaped(std::string_view(name).substr(0, name.size() - k_suffix.size()))), "",
                       join_path(directory, name)});
  return found;
}

std::vector<Expected> machine_mounts(sys::System& system) {
  const auto files = system.entries(
      {{{.path = k_fstab, .follow = true, .read_bytes = k_most_fstab_bytes}, {.path = k_units, .list = true}}});
  auto found = fstab_mounts(files.front().content);
  const auto& names = files.back().names;
  const auto units = unit_mounts(names, k_units);
  if (units.empty())
    return found;
  sys::EntryRequest questions;
  for (const auto& unit : units)
    questions.queries.push_back({.path = unit.origin, .follow = true, .read_bytes = k_most_unit_bytes});
  for (const auto& name : names)
    if (name.ends_with(".wants") || name.ends_with(".requires"))
      questions.queries.push_back({.path = join_path(k_units, name), .list = true});
  const auto answers = system.entries(questions);
  std::set<std::string> enabled;
  for (const auto& answer : answers)
    enabled.insert(answer.names.begin(), answer.names.end());
  for (std::size_t index = 0; index < units.size() && index < answers.size(); ++index)
    if (enabled.contains(base_name(units[index].origin)) && is_network_unit(answers[index].content))
      found.push_back(units[index]);
  return found;
}

Diagnoses guard_launch(sys::System& system, const std::vector<Expected>& expected, const Launch& launch,
                       std::chrono::milliseconds deadline) {
  const auto table = system.mounts();
  if (!table)
    return {};
  Diagnoses found;
  std::vector<const Expected*> mounted; // and named by a path
  std::vector<std::string> paths;
  sys::EntryRequest questions{{}, deadline};
  std::set<std::string> seen;
  for (const auto& one : expected) {
    if (!seen.insert(one.target).second)
      continue;
    auto path = path_on(launch, one.target);
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
