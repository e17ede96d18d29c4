#include "conda/condarc_link.hpp"

#include "base/path.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <set>

namespace sharefs::conda {

namespace {

using sys::EntryKind;

constexpr std::size_t k_largest_condarc = 64U << 10U;
constexpr std::array<const char*, 6> k_startup_files{".bashrc", ".bash_profile", ".profile",
                                                     ".zshrc",  ".zshenv",       ".zprofile"};
constexpr std::array<const char*, 5> k_host_startup_files{"/etc/environment", "/etc/profile", "/etc/bash.bashrc",
                                                          "/etc/bashrc", "/etc/zsh/zshenv"};

/// Whether the entry is why nothing can be done in this home.
bool stop_at(HomeState& home, const sys::Entry& entry, HomeProblem if_missing) {
  if (entry.hung())
    home.problem = HomeProblem::no_answer;
  else if (entry.kind == EntryKind::unknown)
    home.problem = HomeProblem::unreadable;
  else if (entry.kind == EntryKind::missing)
    home.problem = if_missing;
  if (home.problem != HomeProblem::none)
    home.where = entry;
  return home.problem != HomeProblem::none;
}

void add_variables(const sys::Entry& file, std::vector<EnvsVariable>& into) {
  std::ranges::move(envs_variables(file.path, file.content), std::back_inserter(into));
}

/// Why the file is not ours to change; empty: it can be read and belongs to the user.
std::string reason_to_leave(const sys::Entry& file, const sys::User& user) {
  if (file.kind == EntryKind::missing)
    return "";
  if (file.kind == EntryKind::symlink)
    return fmt::format("it is a symbolic link to `{}`; sharefs follows no link below a home", file.link_target);
  if (file.kind != EntryKind::file)
    return "it is no regular file";
  if (file.uid != user.uid)
    return fmt::format("it belongs to user {}, not to `{}`", file.uid, user.name);
  if (file.gid != user.gid && std::ranges::find(user.groups, file.gid) == user.groups.end())
    return fmt::format("`{}` cannot keep its group, {}", user.name, file.gid); // the new one would lack it
  return file.content.size() > k_largest_condarc ? "it is larger than 64 KiB" : "";
}

class CondarcWork {
 public:
  CondarcWork(const HomeState& home, const LinkRequest& request)
      : m_home(home), m_request(request), m_state(*home.condarc), m_file(m_state.file) {}

  Decision decide() {
    if (m_request.verb == LinkRequest::Verb::unlink) {
      unlink();
      return std::move(m_decision);
    }
    say_variables();
    for (const auto& place : m_home.environments)
      if (!place.unusable.empty())
        add(Severity::warning, "SF308", m_home.name,
            "user `" + m_home.name + "` could not run Python of `" + place.target + "`: " + place.unusable,
            "all directories above it have to let its users through, and its files have to be readable");
    link();
    return std::move(m_decision);
  }

 private:
  void link() {
    if (const auto reason = reason_to_leave(m_file, m_home.actor->user); !reason.empty())
      return refuse(reason);
    const auto text = with_envs_directory(m_file.content, m_state.own, m_request.store);
    if (!text)
      return refuse(text.error().message);
    if (*text != m_file.content)
      write("conda finds the environments of the store by it", *text);
  }

  void unlink() {
    if (m_file.kind != EntryKind::file || m_file.content.find(m_request.store) == std::string::npos)
      return;
    if (const auto reason = reason_to_leave(m_file, m_home.actor->user); !reason.empty())
      return refuse(reason);
    const auto text = without_envs_directory(m_file.content, m_request.store);
    if (!text)
      return refuse(text.error().message);
    if (text->empty())
      m_decision.plan.add("home " + m_home.name, "nothing else is in it",
                          plan::RemoveFile{m_file.path, m_file.content, m_file.mode, m_home.actor});
    else if (*text != m_file.content)
      write("without the store", *text);
  }

  void write(std::string why, std::string after) {
    const auto before = m_file.exists() ? std::optional(m_file.content) : std::nullopt;
    m_decision.plan.add("home " + m_home.name, std::move(why),
                        plan::WriteFile{m_file.path, before, std::move(after), 0644, m_home.actor});
  }

  void say_variables() {
    std::set<std::string> names, places;
    for (const auto& one : m_state.variables)
      if (names.insert(one.name).second)
        places.insert(one.name + " (" + one.where + ")");
    if (names.size() == 2)
      add(Severity::warning, "SF322", m_home.name,
          fmt::format(
              "{} and {} are both set: they are one setting, and conda, mamba and micromamba stop when both are",
              *places.begin(), *places.rbegin()),
          "unset CONDA_ENVS_PATH, and keep its directories in CONDA_ENVS_DIRS");
    else if (names.size() == 1)
      add(Severity::info, "SF323", m_home.name,
          *places.begin() + " is set: its directories come before those of .condarc, for `conda create -n` too", "");
  }

  void refuse(const std::string& why) {
    const auto line =
        m_request.verb == LinkRequest::Verb::link
            ? fmt::format("add `{}` by hand, or `- {}` behind the first element of the list that is there",
                          envs_directories_line(m_state.own, m_request.store), m_request.store)
            : fmt::format("take `{}` out of `envs_dirs` by hand", m_request.store);
    add(Severity::error, "SF321", m_file.path, why, line);
  }

  void add(Severity severity, std::string code, std::string subject, std::string message, std::string hint) {
    m_decision.found.push_back(
        {severity, std::move(code), std::move(subject), std::move(message), std::move(hint), ""});
  }

  const HomeState& m_home;
  const LinkRequest& m_request;
  const CondarcState& m_state;
  const sys::Entry& m_file;
  Decision m_decision;
};

} // namespace

std::vector<EnvsVariable> host_envs_variables(sys::System& system) {
  sys::EntryRequest request;
  for (const auto* path : k_host_startup_files)
    request.queries.push_back({.path = path, .follow = true, .read_bytes = k_largest_condarc});
  const auto more = system.entry({.path = "/etc/profile.d", .follow = true, .list = true});
  for (const auto& name : more.names)
    if (name.ends_with(".sh") || name.ends_with(".csh"))
      request.queries.push_back({.path = join_path(more.path, name), .follow = true, .read_bytes = k_largest_condarc});
  std::vector<EnvsVariable> found;
  for (const auto& entry : system.entries(request))
    add_variables(entry, found);
  return found;
}

void read_condarc(HomeReader& reader, const LinkRequest& request, const std::vector<EnvsVariable>& of_host,
                  HomeState& home) {
  const bool links = request.verb == LinkRequest::Verb::link;
  const auto& above = home.actor->beneath;
  const auto envs = join_path(home.conda, "envs");
  std::vector<sys::EntryQuery> queries{
      {.path = above, .links = sys::Links::none},
      {.path = join_path(above, ".condarc"), .read_bytes = k_largest_condarc + 1, .links = sys::Links::none}};
  if (links) {
    queries.push_back({.path = home.conda, .follow = true, .access = true});
    queries.push_back({.path = envs, .follow = true, .access = true});
    for (const auto* name : k_startup_files)
      queries.push_back({.path = join_path(above, name), .follow = true, .read_bytes = k_largest_condarc});
    for (const auto& name : request.environments)
      queries.push_back({.path = join_path(request.store, name + "/bin/python"), .follow = true});
  }
  auto entries = reader.read(home.actor->user, std::move(queries));
  if (stop_at(home, entries[0], HomeProblem::no_home) || stop_at(home, entries[1], HomeProblem::none))
    return;
  if (links && stop_at(home, entries[2], HomeProblem::no_installation))
    return;
  auto& state = home.condarc.emplace();
  state.file = std::move(entries[1]);
  if (!links)
    return;
  // Where conda may not write it takes ~/.conda/envs first (conda base/context.py).
  const auto& home_path = home.actor->user.home;
  const auto& holds = entries[3].exists() ? entries[3] : entries[2];
  const bool below = is_under(home.conda, above);
  state.own = !holds.writable ? normalize_path(".conda/envs", home_path)
              : below         ? normalize_path(home_path + envs.substr(above.size()))
                              : envs;
  constexpr std::size_t k_first = 4;
  for (std::size_t index = 0; index < k_startup_files.size(); ++index)
    add_variables(entries[k_first + index], state.variables);
  state.variables.insert(state.variables.end(), of_host.begin(), of_host.end());
  for (std::size_t index = 0; index < request.environments.size(); ++index)
    home.environments.push_back(
        {.environment = request.environments[index],
         .target = join_path(request.store, request.environments[index]),
         .unusable = reason_to_fail(home.actor->user, entries[k_first + k_startup_files.size() + index])});
}

Decision decide_condarc(const HomeState& home, const LinkRequest& request) {
  return CondarcWork(home, request).decide();
}

} // namespace sharefs::conda
