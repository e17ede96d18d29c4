#include "conda/store.hpp"

#include "base/path.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cerrno>

namespace sharefs::conda {

namespace {

using sys::PathKind;
using Condition = StoreState::Condition;

constexpr std::size_t k_readers_to_try = 4;

bool is_denied(const sys::PathFact& fact) {
  return fact.error_number == EACCES || fact.error_number == EPERM;
}

/// The share with the deepest mount point above the store.
const Share* share_of(const std::string& store, const std::vector<Share>& shares) {
  const Share* found = nullptr;
  for (const auto& share : shares)
    if (is_under(store, share.at) && (found == nullptr || share.at.size() > found->at.size()))
      found = &share;
  return found;
}

/// The facts as whoever may see all of them; as ourselves if nobody may.
Result<std::vector<sys::PathFact>> look(sys::System& system, sys::InspectRequest request,
                                        const std::vector<sys::User>& readers) {
  auto facts = system.inspect(request);
  if (!facts || system.identity().uid != 0)
    return facts;
  for (std::size_t reader = 0; reader < std::min(readers.size(), k_readers_to_try); ++reader) {
    if (std::ranges::none_of(*facts, is_denied))
      break;
    request.as = readers[reader];
    auto theirs = system.inspect(request);
    if (theirs && std::ranges::none_of(*theirs, is_denied))
      facts = std::move(theirs);
  }
  return facts;
}

Condition condition_of(const sys::PathFact& store) {
  switch (store.kind) {
  case PathKind::missing:
    return Condition::missing;
  case PathKind::directory:
    return is_denied(store) ? Condition::unreadable : Condition::usable;
  case PathKind::unknown:
    return is_denied(store) ? Condition::unreadable : Condition::failed;
  default:
    return Condition::not_directory;
  }
}

Diagnosis error(std::string code, std::string subject, std::string message, std::string hint, std::string fix = {}) {
  return {Severity::error, std::move(code), std::move(subject), std::move(message), std::move(hint), std::move(fix)};
}

Diagnosis missing_store(const StoreState& state) {
  if (!state.share.empty() || sys::is_shared_fs_type(state.owner_type))
    return error("SF302", state.path, "the store is not on the share that is mounted on `" + state.owner + "`",
                 "make it there, or correct `conda.store`");
  return error("SF302", state.path,
               "the store does not exist; it would lie on the local file system of `" + state.owner + "`",
               "mount the share that holds it, or correct `conda.store`");
}

Diagnoses diagnose_environment(const StoreState& state, const StoredEnvironment& environment) {
  const auto path = join_path(state.path, environment.name);
  switch (environment.kind) {
  case PathKind::missing: {
    auto hint = did_you_mean_hint(environment.name, state.entries);
    return {error("SF303", path, "environment `" + environment.name + "` is not in the store",
                  hint.empty() ? "move or create it there first" : std::move(hint))};
  }
  case PathKind::directory:
    break;
  case PathKind::unknown:
    return {{Severity::warning, "SF304", path,
             "environment `" + environment.name + "` could not be looked at: " + errno_text(environment.error_number),
             "its users need at least read and search permission", ""}};
  default:
    return {error("SF303", path, "environment `" + environment.name + "` is not a directory", "")};
  }
  Diagnoses found;
  if (environment.meta == PathKind::missing)
    found.push_back({Severity::warning, "SF304", path,
                     "there is no `conda-meta` in it: conda will not take it as an environment",
                     "check that the copy is complete", ""});
  if ((environment.mode & 02U) != 0)
    found.push_back({Severity::warning, "SF305", path,
                     "everybody may write to it (mode " + format_mode(environment.mode) +
                         "): one user's `conda env remove` or `pip install` changes it for all",
                     "take the permission of others away", "chmod -R o-w " + shell_quote(path)});
  return found;
}

} // namespace

Result<StoreState> probe_store(sys::System& system, const StoreRequest& request) {
  StoreState state;
  state.path = request.store;
  const auto mounts = system.mounts();
  if (!mounts)
    return fail(mounts.error());
  if (const auto* owner = mounts->owner_of(request.store); owner != nullptr) {
    state.owner = owner->target;
    state.owner_type = owner->fs_type;
  }
  if (const auto* share = share_of(request.store, request.shares); share != nullptr) {
    state.share = share->name;
    state.share_at = share->at;
    if (mounts->at(share->at) == nullptr) {
      state.condition = Condition::not_mounted;
      return state;
    }
  }

  sys::InspectRequest questions;
  questions.queries.push_back({.path = request.store, .follow = true, .list = true});
  for (const auto& name : request.environments) {
    const auto path = join_path(request.store, name);
    questions.queries.push_back({.path = path, .follow = true});
    questions.queries.push_back({.path = join_path(path, "conda-meta"), .follow = true});
  }
  const auto facts = look(system, std::move(questions), request.readers);
  if (!facts) {
    if (facts.error().code != ErrorCode::timeout)
      return fail(facts.error());
    state.condition = Condition::no_answer;
    return state;
  }
  const auto& store = facts->front();
  state.condition = condition_of(store);
  state.error_number = store.error_number;
  state.device = store.device;
  state.inode = store.inode;
  state.entries = store.entries;
  for (std::size_t index = 0; index < request.environments.size(); ++index) {
    const auto& directory = facts->at(1 + 2 * index);
    state.environments.push_back({request.environments[index], directory.kind, directory.error_number,
                                  facts->at(2 + 2 * index).kind, directory.mode, directory.device, directory.inode});
  }
  return state;
}

Diagnoses diagnose_store(const StoreState& state) {
  Diagnoses found;
  switch (state.condition) {
  case Condition::not_mounted:
    return {error("SF301", state.path,
                  "share `" + state.share + "` that holds the store is not mounted on `" + state.share_at + "`",
                  "mount it first", "sharefs mount " + shell_quote(state.share))};
  case Condition::missing:
    return {missing_store(state)};
  case Condition::not_directory:
    return {error("SF302", state.path, "the store is not a directory", "correct `conda.store`")};
  case Condition::no_answer:
    return {error("SF302", state.path,
                  "the store did not answer in time: the server of `" + state.owner + "` may be down",
                  "see which share hangs, and why", "sharefs status")};
  case Condition::failed:
    return {
        error("SF302", state.path, "the store cannot be read: " + errno_text(state.error_number),
              state.error_number == ESTALE ? "mount the share again" : "",
              state.error_number == ESTALE
                  ? "sharefs recover" + (state.share.empty() ? std::string(" --all") : " " + shell_quote(state.share))
                  : "")};
  case Condition::unreadable:
    found.push_back(
        {Severity::warning, "SF302", state.path,
         "the store may not be listed by root nor by the first users: its environments could not all be checked",
         "the users of the environments need read and search permission on it", ""});
    break;
  case Condition::usable:
    break;
  }
  for (const auto& environment : state.environments) {
    if (state.condition == Condition::unreadable && environment.kind == PathKind::unknown)
      continue; // said once, above
    std::ranges::move(diagnose_environment(state, environment), std::back_inserter(found));
  }
  return found;
}

} // namespace sharefs::conda
