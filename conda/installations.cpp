#include "conda/installations.hpp"

#include "conda/ask_homes.hpp"

#include "base/path.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <optional>

namespace sharefs::conda {

namespace {

using sys::PathKind;

constexpr std::chrono::milliseconds k_search_deadline{3000};
constexpr std::size_t k_environments_to_ask = 200; // of one installation

/// What the installers make by default (and conda itself for ~/.conda, where a read-only installation puts
/// environments).
constexpr std::array<std::string_view, 13> k_below_home{
    "miniconda3", "anaconda3", "miniforge3", "mambaforge", "micromamba", "miniconda", "anaconda",
    "miniforge",  "mamba",     "conda",      "miniconda2", "anaconda2",  ".conda"};
constexpr std::array<std::string_view, 8> k_of_host{"/opt/conda",      "/opt/miniconda3",      "/opt/anaconda3",
                                                    "/opt/miniforge3", "/opt/mambaforge",      "/opt/miniconda",
                                                    "/opt/anaconda",   "/usr/local/miniconda3"};

struct Places {
  std::string user, home;
  std::vector<std::string> paths;
  std::optional<sys::User> as;
};

Places places_of(const sys::User& user, bool as_root) {
  Places places{user.name, normalize_path(user.home), {}, as_root ? std::optional(user) : std::nullopt};
  for (const auto name : k_below_home)
    places.paths.push_back(join_path(places.home, name));
  return places;
}

Diagnosis problem(const Places& places, const Error& error) {
  const auto late = error.code == ErrorCode::timeout;
  return {Severity::warning,
          "SF312",
          places.home,
          late ? "the home did not answer in time: " + error.message : "cannot look into it: " + error.message,
          late ? "is its server down?" : "",
          ""};
}

/// Looks through the places of one home (or of the host).
class Search {
 public:
  Search(sys::System& system, const Places& places) : m_system(system), m_places(places) {}

  /// False when a deadline passed.
  [[nodiscard]] bool answered() const { return m_answered; }

  Installations run() {
    std::vector<sys::PathQuery> places;
    for (const auto& path : m_places.paths)
      places.push_back({.path = path});
    const auto there = ask(std::move(places));
    std::vector<sys::PathQuery> inside; // of real directories only: a link may lead to a server that does not answer
    if (there)
      for (const auto& place : *there)
        if (place.kind == PathKind::directory) {
          inside.push_back({.path = join_path(place.path, "conda-meta")});
          inside.push_back({.path = join_path(place.path, "envs"), .list = true});
        }
    if (inside.empty())
      return std::move(m_result);
    if (const auto facts = ask(std::move(inside)))
      for (std::size_t index = 0; index + 1 < facts->size(); index += 2)
        take(parent_path(facts->at(index).path), facts->at(index), facts->at(index + 1));
    return std::move(m_result);
  }

 private:
  void take(const std::string& path, const sys::PathFact& meta, const sys::PathFact& envs) {
    const bool has_envs = envs.kind == PathKind::directory || envs.kind == PathKind::symlink;
    // ~/.conda is there for everybody who ever ran conda: only its `envs` counts. Micromamba's root has no conda-meta.
    if (!has_envs && meta.kind != PathKind::directory)
      return;
    if (path.ends_with("/.conda") && envs.entries.empty())
      return;
    Installation found{
        .user = m_places.user, .path = path, .below = {}, .envs_link = {}, .environments = {}, .links = {}};
    if (!m_places.user.empty())
      found.below = path.substr(std::min(path.size(), m_places.home.size() + 1));
    found.envs_is_link = envs.kind == PathKind::symlink;
    found.envs_link = envs.link_target;
    if (envs.kind == PathKind::directory)
      take_environments(envs, found);
    m_result.found.push_back(std::move(found));
  }

  /// Links are only read: they may lead into a store that does not answer.
  void take_environments(const sys::PathFact& envs, Installation& into) {
    std::vector<sys::PathQuery> entries;
    for (const auto& name : envs.entries)
      if (!name.starts_with('.') && entries.size() < k_environments_to_ask)
        entries.push_back({.path = join_path(envs.path, name)});
    std::vector<sys::PathQuery> metas;
    if (const auto facts = entries.empty() ? std::nullopt : ask(std::move(entries)))
      for (const auto& fact : *facts) {
        if (fact.kind == PathKind::symlink)
          into.links.push_back({base_name(fact.path), fact.link_target});
        if (fact.kind == PathKind::directory)
          metas.push_back({.path = join_path(fact.path, "conda-meta")});
      }
    if (const auto facts = metas.empty() ? std::nullopt : ask(std::move(metas)))
      for (const auto& fact : *facts)
        if (fact.kind == PathKind::directory)
          into.environments.push_back(base_name(parent_path(fact.path)));
  }

  std::optional<std::vector<sys::PathFact>> ask(std::vector<sys::PathQuery> queries) {
    auto facts = m_system.inspect({std::move(queries), k_search_deadline, m_places.as});
    if (facts)
      return std::move(*facts);
    m_answered = m_answered && facts.error().code != ErrorCode::timeout;
    m_result.problems.push_back(problem(m_places, facts.error()));
    return std::nullopt;
  }

  sys::System& m_system;
  const Places& m_places;
  Installations m_result;
  bool m_answered = true;
};

} // namespace

Installations find_installations(sys::System& system, const std::vector<sys::User>& users) {
  const auto self = system.identity();
  std::vector<Places> places;
  for (const auto& user : users)
    if (user.home.starts_with('/') && (self.uid == 0 || self.uid == user.uid))
      places.push_back(places_of(user, self.uid == 0));
  places.push_back({"", "/opt", {k_of_host.begin(), k_of_host.end()}, std::nullopt});

  std::vector<std::string> homes;
  for (const auto& place : places)
    homes.push_back(place.user.empty() ? "" : place.home);
  std::vector<Installations> results(places.size());
  std::vector<std::atomic<std::size_t>> skipped(places.size()); // homes on the mount of one that did not answer
  const auto ask = [&](std::size_t index) {
    Search search(system, places[index]);
    results[index] = search.run();
    return search.answered();
  };
  const auto mounts = system.mounts();
  ask_homes(mounts.value_or(sys::MountTable()), homes, ask, [&](std::size_t, std::size_t asked) { ++skipped[asked]; });
  for (std::size_t index = 0; index < places.size(); ++index)
    if (skipped[index] > 0 && !results[index].problems.empty())
      results[index].problems.front().message +=
          "; " + count_of(skipped[index], "other home") + " on the same mount: not looked into";
  Installations all;
  for (auto& result : results) {
    std::ranges::move(result.found, std::back_inserter(all.found));
    std::ranges::move(result.problems, std::back_inserter(all.problems));
  }
  return all;
}

} // namespace sharefs::conda
