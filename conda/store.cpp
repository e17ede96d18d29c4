#include "conda/homes.hpp"
#include "conda/link.hpp"

#include "base/path.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cerrno>

namespace sharefs::conda {

namespace {

using sys::EntryKind;

Diagnosis error(std::string code, std::string subject, std::string message, std::string hint, std::string fix = {}) {
  return {Severity::error, std::move(code), std::move(subject), std::move(message), std::move(hint), std::move(fix)};
}

/// Returns what is wrong with the directory itself; a warning if its environments may be sound nevertheless.
std::optional<Diagnosis> diagnose_directory(const StoreState& state) {
  const auto& store = state.entry;
  if (state.unmounted)
    return error("SF301", store.path,
                 "share `" + state.share->name + "` that holds the store is not mounted on `" + state.share->at + "`",
                 "mount it first", "sharefs mount " + shell_quote(state.share->name));
  if (store.hung())
    return error("SF302", store.path,
                 "the store did not answer in time: the server of `" + store.mount + "` may be down",
                 "see which share hangs, and why", "sharefs status");
  if (is_denied(store))
    return Diagnosis{Severity::warning,
                     "SF302",
                     store.path,
                     "neither root nor the first users may list the store: its environments could not all be checked",
                     "the users of the environments need read and search permission on it",
                     ""};
  if (store.kind == EntryKind::missing && (state.share || store.shared))
    return error("SF324", store.path, "nobody has shared an environment yet: there is no store on the share",
                 "`sharefs conda share ENV` makes it, with the first environment");
  if (store.kind == EntryKind::missing)
    return error("SF302", store.path,
                 "the store does not exist; it would lie on the local file system of `" + store.mount + "`",
                 "mount the share that holds it, or correct `conda.store`");
  if (store.kind == EntryKind::unknown && store.error_number == ESTALE)
    return error("SF302", store.path, "the store cannot be read: " + reason_of(store), "mount the share again",
                 "sharefs recover " + (state.share ? shell_quote(state.share->name) : "--all"));
  if (store.kind == EntryKind::unknown)
    return error("SF302", store.path, "the store cannot be read: " + reason_of(store), "");
  if (store.kind != EntryKind::directory)
    return error("SF302", store.path, "the store is not a directory", "correct `conda.store`");
  return std::nullopt;
}

Diagnoses diagnose_environment(const StoreState& state, const StoredEnvironment& environment) {
  const auto& name = environment.name;
  const auto& entry = environment.entry;
  const auto& meta = environment.meta;
  if (entry.kind == EntryKind::missing)
    return {error("SF303", entry.path, "environment `" + name + "` is not in the store",
                  did_you_mean_hint(name, state.entry.names,
                                    "move or create it there first; `sharefs conda list` knows whether it was there "
                                    "before"))};
  if (entry.kind == EntryKind::unknown)
    return {{Severity::warning, "SF304", entry.path,
             "environment `" + name + "` could not be checked: " + reason_of(entry),
             "its users need at least read and search permission", ""}};
  if (entry.kind != EntryKind::directory)
    return {error("SF303", entry.path, "environment `" + name + "` is not a directory", "")};
  Diagnoses found;
  if (meta.kind == EntryKind::missing)
    found.push_back({Severity::warning, "SF304", entry.path,
                     "it has no `conda-meta`: conda will not take it for an environment",
                     "check that the copy is complete", ""});
  if ((entry.mode & 02U) != 0)
    found.push_back({Severity::warning, "SF305", entry.path,
                     "everybody may write to it (mode " + format_mode(entry.mode) +
                         "): one user's `conda env remove` or `pip install` changes it for all",
                     "take the permission of others away", "chmod -R o-w " + shell_quote(entry.path)});
  return found;
}

/// Reads the store again if it is missing. An NFS client caches for half a minute that a name is missing; opening the
/// directory above ends that, so that a store which another host has just made is found.
PermittedEntries read_store(sys::System& system, const sys::EntryRequest& wanted,
                            const std::vector<std::string>& users) {
  auto seen = read_as_permitted(system, wanted, users);
  const auto& store = seen.entries.front();
  if (store.kind != EntryKind::missing || !store.shared)
    return seen;
  [[maybe_unused]] const auto opened =
      system.entries({{{.path = store.ancestor, .list = true}}, wanted.deadline, seen.by});
  return read_as_permitted(system, wanted, users);
}

} // namespace

const Share* share_of(const std::string& path, const std::vector<Share>& shares) {
  const Share* found = nullptr;
  for (const auto& share : shares)
    if (is_under(path, share.at) && (found == nullptr || share.at.size() > found->at.size()))
      found = &share;
  return found;
}

const Share* unmounted_share(const std::string& path, const std::vector<Share>& shares, const sys::MountTable& mounts) {
  const auto* share = share_of(path, shares);
  return share == nullptr || share->served_here || mounts.at(share->at) != nullptr ? nullptr : share;
}

StoreState probe_store(sys::System& system, const sys::MountTable& mounts, const LinkRequest& request) {
  StoreState state;
  state.entry.path = request.store;
  if (const auto* share = share_of(request.store, request.shares); share != nullptr)
    state.share = *share;
  state.unmounted = unmounted_share(request.store, request.shares, mounts) != nullptr;
  if (state.unmounted)
    return state;
  sys::EntryRequest wanted;
  wanted.queries.push_back({.path = request.store, .follow = true, .list = true});
  for (const auto& name : request.environments) {
    const auto path = join_path(request.store, name);
    wanted.queries.push_back({.path = path, .follow = true});
    wanted.queries.push_back({.path = join_path(path, "conda-meta"), .follow = true});
  }
  constexpr std::size_t k_each = 2;
  auto [entries, by] = read_store(system, wanted, users_of(request.homes));
  state.by = std::move(by);
  for (std::size_t index = 0; index < request.environments.size(); ++index)
    state.environments.push_back({.name = request.environments[index],
                                  .entry = std::move(entries[1 + k_each * index]),
                                  .meta = std::move(entries[2 + k_each * index])});
  state.entry = std::move(entries.front());
  return state;
}

bool is_usable(const StoreState& state) {
  const auto problem = diagnose_directory(state);
  const auto is_good = [&](const StoredEnvironment& environment) { return !is_left_out(state, environment.name); };
  return (!problem || problem->severity != Severity::error) &&
         (state.environments.empty() || std::ranges::any_of(state.environments, is_good));
}

bool is_left_out(const StoreState& state, const std::string& environment) {
  return std::ranges::any_of(state.environments, [&](const StoredEnvironment& one) {
    return one.name == environment && has_errors(diagnose_environment(state, one));
  });
}

Diagnoses diagnose_store(const StoreState& state) {
  Diagnoses found;
  const auto problem = diagnose_directory(state);
  if (problem)
    found.push_back(*problem);
  if (has_errors(found))
    return found;
  for (const auto& environment : state.environments)
    if (!problem || environment.entry.kind != EntryKind::unknown) // `problem` has reported that it cannot be read
      std::ranges::move(diagnose_environment(state, environment), std::back_inserter(found));
  return found;
}

} // namespace sharefs::conda
