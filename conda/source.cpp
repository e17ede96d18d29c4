#include "conda/generation.hpp"
#include "conda/homes.hpp"
#include "conda/share.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"

#include <fmt/format.h>

namespace sharefs::conda {

namespace {

/// Finds the directory that an interrupted exchange has left under the name of a backup. Returns false if there is
/// nothing to share.
bool find_cut_off(sys::System& system, Source& source, const std::string& target) {
  using sys::EntryKind;
  const auto kept = source.backup;
  source.backup.clear();
  if (kept.empty())
    return source.entry.exists();
  sys::EntryRequest request{{{.path = join_path(parent_path(source.path), kept), .links = sys::Links::none}}};
  if (system.identity().uid == 0)
    request.as = source.actor.user;
  auto entry = system.entries(request).front();
  if (source.entry.kind == EntryKind::missing && entry.kind == EntryKind::directory) {
    source.entry = std::move(entry);
    source.backup = kept;
  } else if (source.entry.kind == EntryKind::directory && entry.kind == EntryKind::symlink &&
             entry.link_target == target) {
    source.backup = kept;
  }
  return source.entry.exists();
}

} // namespace

Result<Source> source_at(sys::System& system, const std::string& where, const std::string& target) {
  auto path = where;
  const auto above = system.entry({.path = parent_path(path), .follow = true, .list = true});
  if (above.kind != sys::EntryKind::directory)
    return fail(above.kind == sys::EntryKind::unknown ? above.error()
                                                      : Error{ErrorCode::not_found, "there is no directory " + path,
                                                              "--from is where the environment lies", ""});
  path = join_path(above.resolved, base_name(path));
  Source source;
  source.path = path;
  source.entry = system.entry({.path = path, .links = sys::Links::none});
  if (source.entry.kind == sys::EntryKind::unknown)
    return fail(source.entry.error());
  source.backup = newest_backup(above.names, base_name(path));
  if (!find_cut_off(system, source, target))
    return fail(ErrorCode::not_found, "there is no directory " + path, "--from is where the environment lies");
  TRY_ASSIGN(const auto owner, owner_of(system, source.entry, "run it on a host that knows that user"));
  const bool below_home = owner.home.starts_with('/') && owner.home != "/" && is_under(path, owner.home);
  source.actor = {owner, below_home ? normalize_path(owner.home) : parent_path(path), 0, 0};
  return source;
}

Result<Source> find_source(sys::System& system, const std::string& store, const std::string& name,
                           const std::vector<Homes>& places) {
  LinkRequest request;
  request.verb = LinkRequest::Verb::unlink;
  request.store = store;
  request.environments = {name};
  request.homes = places;
  TRY_ASSIGN(const auto homes, probe(system, request));
  const auto target = join_path(store, name);
  std::vector<Source> directories, links;
  for (const auto& home : homes.homes)
    for (const auto& place : home.environments) {
      Source source{place.entry.path, *home.actor, place.entry, place.backup};
      if (!find_cut_off(system, source, target))
        continue;
      if (source.entry.kind == sys::EntryKind::directory)
        directories.push_back(std::move(source));
      else if (source.entry.kind == sys::EntryKind::symlink && source.entry.link_target == target)
        links.push_back(std::move(source));
    }
  if (directories.size() == 1)
    return directories.front();
  if (directories.empty() && !links.empty())
    return links.front();
  const auto users = users_of(request.homes);
  if (directories.empty()) {
    auto message = fmt::format("no environment `{}` was found in the homes of {}", name,
                               users.empty() ? "`conda.homes`, which names nobody" : join(users, ", "));
    for (const auto& home : homes.homes) // it may be in a home that could not be read
      if (home.problem == HomeProblem::no_answer || home.problem == HomeProblem::unreadable)
        message += "; " + home.where.error().message;
    return fail(ErrorCode::not_found, std::move(message),
                fmt::format("`sharefs conda share {} --from PATH` names its directory", name));
  }
  std::vector<std::string> paths;
  for (const auto& one : directories)
    paths.push_back(one.path);
  return fail(ErrorCode::usage,
              fmt::format("`{}` lies in {}: {}", name, count_of(paths.size(), "home"), join(paths, ", ")),
              fmt::format("name one: `sharefs conda share {} --from {}`", name, shell_quote(paths.front())));
}

} // namespace sharefs::conda
