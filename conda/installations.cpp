#include "conda/installations.hpp"

#include "base/path.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <array>

namespace sharefs::conda {

namespace {

using sys::Entry;
using sys::EntryKind;

constexpr std::size_t k_environments_to_ask = 200;                            // of one installation
constexpr std::size_t k_condarc_bytes = 64U << 10U, k_most_directories = 100; // of one .condarc
constexpr std::array<const char*, 2> k_condarc_of_host{"/etc/conda/.condarc", "/etc/conda/condarc"};

/// What the installers make by default (and conda itself for ~/.conda, where a read-only installation puts
/// environments).
constexpr std::array<std::string_view, 13> k_below_home{
    "miniconda3", "anaconda3", "miniforge3", "mambaforge", "micromamba", "miniconda", "anaconda",
    "miniforge",  "mamba",     "conda",      "miniconda2", "anaconda2",  ".conda"};
constexpr std::array<std::string_view, 8> k_of_host{"/opt/conda",      "/opt/miniconda3",      "/opt/anaconda3",
                                                    "/opt/miniforge3", "/opt/mambaforge",      "/opt/miniconda",
                                                    "/opt/anaconda",   "/usr/local/miniconda3"};

/// Entries in the order of the queries.
using Read = std::function<std::vector<Entry>(std::vector<sys::EntryQuery>)>;

/// Nothing is asked through a link: it may lead into a store that does not answer.
sys::EntryQuery query(std::string path, bool list = false) {
  return {.path = std::move(path), .list = list, .links = sys::Links::none};
}

void read_environments(const Entry& envs, const Read& read, Installation& into) {
  std::vector<sys::EntryQuery> queries;
  for (const auto& name : envs.names)
    if (const auto path = join_path(envs.path, name);
        !name.starts_with('.') && queries.size() < 2 * k_environments_to_ask) {
      queries.push_back(query(path));
      queries.push_back(query(join_path(path, "conda-meta")));
    }
  const auto entries = queries.empty() ? std::vector<Entry>{} : read(std::move(queries));
  for (std::size_t index = 0; index < entries.size(); index += 2)
    if (const auto name = base_name(entries[index].path); entries[index].kind == EntryKind::symlink)
      into.links.push_back({name, entries[index].link_target});
    else if (entries[index + 1].kind == EntryKind::directory)
      into.environments.push_back(name);
}

/// The first entry that had no answer, or that its user may not read.
std::optional<Entry> find_installations_at(const std::vector<std::string>& paths, const Read& read,
                                           std::vector<Installation>& into) {
  std::vector<sys::EntryQuery> queries;
  for (const auto& path : paths)
    for (auto one : {query(path), query(join_path(path, "conda-meta")), query(join_path(path, "envs"), true)})
      queries.push_back(std::move(one));
  const auto entries = read(std::move(queries));
  std::optional<Entry> problem;
  for (std::size_t index = 0; index < entries.size(); index += 3) {
    const auto& [place, meta, envs] = std::tie(entries[index], entries[index + 1], entries[index + 2]);
    const auto& last = place.kind == EntryKind::directory ? envs : place;
    if (last.kind == EntryKind::unknown && !problem)
      problem = last;
    const bool has_envs = envs.kind == EntryKind::directory || envs.kind == EntryKind::symlink;
    // ~/.conda is there for everybody who ever ran conda: only its `envs` counts. Micromamba's root has no conda-meta.
    if (place.kind != EntryKind::directory || (!has_envs && meta.kind != EntryKind::directory) ||
        (place.path.ends_with("/.conda") && envs.names.empty()))
      continue;
    Installation found;
    found.path = place.path;
    found.envs_is_link = envs.kind == EntryKind::symlink;
    found.envs_link = envs.link_target;
    read_environments(envs, read, found);
    into.push_back(std::move(found));
  }
  return problem;
}

/// Where the user has conda by `conda.homes`; empty: that does not name him.
std::string place_of(const sys::User& user, const std::vector<Homes>& homes) {
  for (const auto& [users, conda] : homes)
    if (std::ranges::find(users, user.name) != users.end())
      return normalize_path(conda, user.home);
  return {};
}

Diagnosis unread(const Entry& home) {
  return {Severity::warning,
          "SF312",
          home.path,
          home.hung() ? "the home did not answer in time: " + reason_of(home)
                      : "the user cannot read it: " + reason_of(home),
          home.hung() ? "is its server down?" : "",
          ""};
}

} // namespace

std::vector<std::string> environment_directories(std::string_view condarc) {
  std::vector<std::string> found;
  bool inside = false;
  for (const auto& whole : split_lines(condarc)) {
    auto line = std::string(trim(whole.substr(0, whole.find('#'))));
    if (line.empty())
      continue;
    const bool key = line.find(':') != std::string::npos && !line.starts_with('-');
    if (key)
      inside = line.starts_with("envs_dirs:");
    if (!inside)
      continue;
    for (auto& letter : line)
      if (std::string_view("[],-\"'").find(letter) != std::string_view::npos &&
          (letter != '-' || &letter == line.data()))
        letter = ' ';
    for (const auto& word : split_words(line))
      if (word.starts_with('/') && found.size() < k_most_directories)
        found.push_back(normalize_path(word));
  }
  return found;
}

Installations find_installations(sys::System& system, const std::vector<sys::User>& users,
                                 const std::vector<Homes>& places) {
  HomeReader reader(system, system.mounts().value_or(sys::MountTable()));
  std::vector<const sys::User*> asked;
  std::vector<std::string> homes;
  for (const auto& user : users)
    if (user.home.starts_with('/') && (reader.as_root() || system.identity().uid == user.uid)) {
      asked.push_back(&user);
      homes.push_back(normalize_path(user.home));
    }
  Installations all;
  const auto found = reader.find(homes);
  for (std::size_t index = 0; index < found.size(); ++index) {
    const auto& user = *asked[index];
    const auto home = found[index].exists() ? found[index].resolved : homes[index];
    std::vector<std::string> paths;
    for (const auto name : k_below_home)
      paths.push_back(join_path(home, name));
    if (auto own = place_of(user, places); is_under(own, homes[index]) && own != homes[index]) {
      own = home + own.substr(homes[index].size());
      if (std::ranges::find(paths, own) == paths.end())
        paths.push_back(std::move(own));
    }
    std::vector<Installation> installations;
    auto problem = found[index].hung()
                       ? std::optional(found[index])
                       : find_installations_at(
                             paths, [&](auto queries) { return reader.read(user, std::move(queries)); }, installations);
    if (problem) {
      problem->path = homes[index];
      all.problems.push_back(unread(*problem));
    }
    const auto condarc = found[index].hung() ? std::vector<Entry>()
                                             : reader.read(user, {{.path = join_path(home, ".condarc"),
                                                                   .read_bytes = k_condarc_bytes,
                                                                   .links = sys::Links::none}});
    for (const auto& one : condarc)
      for (auto& path : environment_directories(one.content))
        all.directories.push_back({user.name, std::move(path)});
    for (auto& installation : installations) {
      installation.user = user.name;
      installation.below = installation.path.substr(home == "/" ? 1 : home.size() + 1);
      installation.path = join_path(homes[index], installation.below);
      all.found.push_back(std::move(installation));
    }
  }
  std::vector<std::string> paths{k_of_host.begin(), k_of_host.end()};
  for (const auto& user : users)
    if (auto own = place_of(user, places); own.starts_with('/') && !is_under(own, normalize_path(user.home)) &&
                                           std::ranges::find(paths, own) == paths.end())
      paths.push_back(std::move(own));
  for (const auto* path : k_condarc_of_host)
    if (const auto condarc =
            system.entry({.path = path, .read_bytes = k_condarc_bytes, .links = sys::Links::trusted, .guarded = true});
        condarc.uid == 0 && (condarc.mode & 0022U) == 0)
      for (auto& directory : environment_directories(condarc.content))
        all.directories.push_back({"", std::move(directory)});
  find_installations_at(
      paths, [&](auto queries) { return system.entries({.queries = std::move(queries)}); }, all.found);
  return all;
}

} // namespace sharefs::conda
