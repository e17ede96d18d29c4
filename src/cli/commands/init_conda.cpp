// The section `conda:` that `sharefs init` writes.
#include "base/path.hpp"
#include "base/text.hpp"
#include "base/visible.hpp"
#include "cli/commands/init_blocks.hpp"
#include "cli/commands/init_text.hpp"
#include "config/yaml_text.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>

namespace sharefs::cli {

namespace {

using conda::Installation;
using config::yaml_scalar;

constexpr std::string_view k_conda_head =
    "# Shared conda environments: `sharefs conda link --all` makes ~/CONDA/envs/ENV in each home a link to STORE/ENV.\n"
    "# `link: whole` makes ~/CONDA/envs itself the link.\n";

/// A store that was shared by hand, known by the links to it out of homes, and by `envs_dirs` of .condarc.
struct FoundStore {
  std::string path;
  bool whole = false;
  std::set<std::string> users, environments;
  bool agreed = false; ///< by several homes, by this host's own configuration, or by who asks
};

/// Root works in the store, for its owner: what one user says alone is shown, but no configuration.
bool is_enough(const std::set<std::string>& users, const InitFacts& facts) {
  return users.size() > 1 || users.contains("") || users.contains("root") || users.contains(facts.user);
}

FoundStore find_store(const InitFacts& facts) {
  std::vector<FoundStore> stores;
  std::map<std::pair<std::string, bool>, std::size_t> known;
  std::map<std::string, std::set<std::string>> named_by;
  const auto store_at = [&](const std::string& path, bool whole, const std::string& user) -> FoundStore* {
    const auto* owner = facts.table.owner_of(path);
    if (owner == nullptr || !sys::is_shared(*owner))
      return nullptr;
    const auto [store, is_new] = known.try_emplace({path, whole}, stores.size());
    if (is_new)
      stores.push_back({path, whole, {}, {}});
    stores[store->second].users.insert(user);
    named_by[path].insert(user);
    return &stores[store->second];
  };
  const auto take_link = [&](const Installation& from, const std::string& link, const std::string& environment) {
    const auto envs = join_path(from.path, "envs");
    const auto target = normalize_path(link, environment.empty() ? from.path : envs);
    const bool whole = environment.empty();
    const auto path = whole ? target : parent_path(target);
    auto* const store = is_under(path, envs) ? nullptr : store_at(path, whole, from.user);
    if (store != nullptr && !whole && base_name(target) == environment)
      store->environments.insert(environment);
  };
  for (const auto& [user, path] : facts.conda.directories)
    store_at(path, false, user);
  for (const auto& installation : facts.conda.found) {
    if (installation.envs_is_link)
      take_link(installation, installation.envs_link, "");
    for (const auto& link : installation.links)
      take_link(installation, link.target, link.name);
  }
  for (auto& store : stores)
    store.agreed = is_enough(named_by[store.path], facts);
  const auto most = std::ranges::max_element(
      stores, {}, [](const FoundStore& store) { return std::pair(store.agreed, store.users.size()); });
  return most == stores.end() ? FoundStore{} : *most;
}

/// Where users have conda, those of most users first; one who has several is in the first. Without any user: the path
/// of an installation of the host.
std::vector<conda::Homes> homes_of(const InitFacts& facts) {
  std::vector<conda::Homes> kinds;
  for (const auto& installation : facts.conda.found) {
    const auto& conda = installation.user.empty() ? installation.path : installation.below;
    auto kind = std::ranges::find(kinds, conda, &conda::Homes::conda);
    if (kind == kinds.end())
      kind = kinds.insert(kind, {{}, conda});
    if (!installation.user.empty())
      kind->users.push_back(installation.user);
  }
  std::ranges::stable_sort(kinds, std::greater(), [](const conda::Homes& one) { return one.users.size(); });
  std::set<std::string> known;
  for (auto& kind : kinds)
    std::erase_if(kind.users, [&](const std::string& user) { return !known.insert(user).second; });
  if (kinds.empty())
    kinds = {{{}, "miniconda3"}};
  kinds.erase(std::remove_if(kinds.begin() + 1, kinds.end(), [](const auto& kind) { return kind.users.empty(); }),
              kinds.end());
  return kinds;
}

std::string conda_block(const FoundStore& store, const std::vector<conda::Homes>& homes) {
  auto text = fmt::format("conda:\n  store: {}\n", yaml_scalar(store.path));
  text += list("  ", "envs", {store.environments.begin(), store.environments.end()});
  text += fmt::format("  link: {}\n  homes:\n", store.whole ? "whole" : "each");
  for (const auto& place : homes) { // several are a list
    const std::string indent = homes.size() > 1 ? "      " : "    ";
    auto one = list(indent, "users", place.users) + fmt::format("{}conda: {}\n", indent, yaml_scalar(place.conda));
    text += homes.size() > 1 ? one.replace(4, 1, "-") : one;
  }
  return text;
}

std::string conda_found(const InitFacts& facts) {
  constexpr std::size_t k_lines = 20;
  std::string text;
  for (std::size_t index = 0; index < std::min(facts.conda.found.size(), k_lines); ++index) {
    const auto& one = facts.conda.found[index];
    const auto holds = one.envs_is_link           ? "its envs is a link to " + one.envs_link
                       : one.environments.empty() ? "no environments of its own"
                                                  : "environments: " + few(one.environments);
    text += visible(fmt::format("#   {}: {}", one.path, holds)) + "\n";
  }
  if (facts.conda.found.size() > k_lines)
    text += fmt::format("#   and {} more\n", facts.conda.found.size() - k_lines);
  return text.empty() ? "# No conda installation was found on this host.\n" : "# Found on this host:\n" + text;
}

} // namespace

std::string conda_text(const InitFacts& facts) {
  auto store = find_store(facts);
  auto homes = homes_of(facts);
  const auto text = std::string(k_conda_head) + conda_found(facts);
  if (!store.path.empty())
    if (const auto block = conda_block(store, homes); refusal(block).empty())
      return store.agreed ? text + block
                          : text +
                                visible(fmt::format("# Only {} names this store, by a link or ~/.condarc. If it is "
                                                    "the one for all:",
                                                    few({store.users.begin(), store.users.end()}))) +
                                "\n" + commented(block, "");
  // Nothing is shared yet: an example with what was found.
  store.path = join_path(facts.mounts.empty() ? "/data/share" : facts.mounts.front().target, "conda");
  store.whole = false;
  store.environments = {"llm_train"};
  if (homes.front().users.empty() && !homes.front().conda.starts_with('/'))
    homes.front().users = {"alice", "bob"};
  return text + "# No link to a shared store was found. For example:\n" + commented(conda_block(store, homes), "");
}

} // namespace sharefs::cli
