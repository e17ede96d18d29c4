#include "conda/share.hpp"

#include "conda/generation.hpp"
#include "conda/homes.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "plan/apply.hpp"
#include "sys/fs/sha256.hpp"
#include "tree/survey.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::conda {

namespace {

/// Finds the directory that an interrupted exchange has left as `kept`, the name of its newest backup. Returns false if
/// there is nothing to share.
bool find_cut_off(sys::System& system, Source& source, const std::string& kept) {
  if (kept.empty() || source.entry.kind != sys::EntryKind::missing)
    return source.entry.exists();
  sys::EntryRequest request{{{.path = join_path(parent_path(source.path), kept), .links = sys::Links::none}}};
  if (system.identity().uid == 0)
    request.as = source.actor.user;
  if (auto entry = system.entries(request).front(); entry.kind == sys::EntryKind::directory)
    source.entry = std::move(entry);
  return source.entry.exists();
}

} // namespace

Result<Source> source_at(sys::System& system, const std::string& where) {
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
  if (!find_cut_off(system, source, newest_backup(above.names, base_name(path))))
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
      Source source{place.entry.path, *home.actor, place.entry};
      if (!find_cut_off(system, source, place.backup))
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

namespace {

/// Checks that .generations and .generations/ENV belong to users who may own them.
Result<void> check_places(sys::System& system, const sys::Entry& store, const std::string& root, const plan::Say& say) {
  const auto found =
      diagnose_places(store, system.entries({{{.path = parent_path(root)}, {.path = root}}}), system.identity().uid);
  say.report(found);
  return found.empty() ? Result<void>{}
                       : fail(ErrorCode::permission, fmt::format("`{}` is not shared there", base_name(root)));
}

/// Makes .generations/ENV/uses and the directories above it. They are not steps of the plan, because the lease lies
/// there and has to be held before any step.
Result<void> make_places(sys::System& system, Sharing& sharing, const plan::Say& say) {
  constexpr std::uint32_t k_sticky = 01000, k_but_set_id = 01777;
  const auto make = [&](const std::string& path, std::uint32_t mode, const sys::FileIdentity& parent = {}) {
    const auto directory = plan::make_directory(path, mode & k_but_set_id, std::nullopt, false, parent);
    return plan::apply_action(directory, system); // mkdir(2) inherits the group
  };
  auto& store = sharing.store;
  if (store.is_new) { // it gets the mode of the directory above it, and inherits the group and ACLs of that
    TRY(make(store.path, store.entry.mode));
    store.entry = system.entry({.path = store.path, .follow = true});
  }
  const auto mode = generation_mode(store.entry.mode, false);
  const auto root = generations_path(store.path, sharing.shared.name);
  TRY(make(parent_path(root), mode | (store.entry.mode & k_sticky), sys::identity_of(store.entry)));
  TRY(make(root, mode));
  TRY(make(join_path(root, "uses"), uses_mode(store.entry.mode)));
  return check_places(system, store.entry, root, say);
}

/// Returns the content of the mark of a copy. The path itself would be replaced when the copy gets another prefix, so
/// its checksum is written.
std::string copy_mark(const Source& source) {
  return fmt::format("{} {}\n", source.entry.inode, sys::sha256(source.path));
}

/// Returns the directory at `path` if it is a copy of the source that this user has begun; nullopt if another user has
/// put it there.
Result<std::optional<tree::Place>> copy_at(sys::System& system, const Source& source, const std::string& path) {
  constexpr std::uint32_t k_others_write = 0022;
  const auto entries = system.entries(
      {.queries = {{.path = path, .links = sys::Links::none},
                   {.path = join_path(path, k_copy_mark), .read_bytes = k_largest_note, .links = sys::Links::none}}});
  for (const auto& entry : entries) // the content of a directory that cannot be read is not known
    if (entry.error_number != 0 && entry.error().code == ErrorCode::failed)
      return fail(entry.error());
  const auto &directory = entries[0], &mark = entries[1];
  const auto self = system.identity().uid;
  if (directory.kind != sys::EntryKind::directory || directory.uid != self || (directory.mode & k_others_write) != 0 ||
      mark.kind != sys::EntryKind::file || mark.uid != self || mark.content != copy_mark(source))
    return std::nullopt;
  return tree::Place{.path = path, .root = system.files().root(), .device = directory.device, .inode = directory.inode};
}

/// Continues a copy or begins one, in a directory that no other user can enter.
Result<tree::Place> begin_copy(sys::System& system, const Source& source, const std::string& path) {
  TRY_ASSIGN(auto found, copy_at(system, source, path));
  if (found)
    return std::move(*found);
  TRY(plan::apply_action(plan::make_directory(path, 0700), system));
  TRY(system.files().write_if(join_path(path, k_copy_mark), std::nullopt, copy_mark(source), 0600));
  TRY_ASSIGN(auto begun, copy_at(system, source, path));
  return begun ? Result<tree::Place>(std::move(*begun))
               : fail(ErrorCode::conflict, path + " is not the copy that was begun: somebody else has put it there",
                      "see who writes in the store, then run the command again");
}

Result<void> write_marks(sys::System& system, const std::string& tree, const std::string& name) {
  TRY_ASSIGN(const auto contents, read_contents(system, tree));
  for (const auto& [path, text] : protection_marks(name, contents.python))
    if (auto written = system.files().write_if(join_path(tree, path), std::nullopt, text, 0644);
        !written && written.error().code != ErrorCode::conflict && written.error().code != ErrorCode::not_found)
      return written;
  return {};
}

/// Adds the guard, and removes another version of it. Returns the directory of its package, which has to be compiled;
/// empty if the guard was not added.
Result<std::string> add_guard(sys::System& system, const tree::Place& copy, const GuardFiles& guard) {
  TRY_ASSIGN(const auto contents, guard.empty() ? Result<Contents>(Contents{}) : read_contents(system, copy.path));
  const auto directory = guard_directory(contents.python);
  if (directory.empty())
    return std::string();
  const auto there = system.entry({.path = join_path(copy.path, directory), .list = true});
  for (const auto& record : guard_records(there.names))
    if (record != record_in(guard))
      TRY(tree::remove({.path = join_path(there.path, record), .root = copy.root}, {}));
  return write_guard(system, copy.path, "", directory, guard).map([&](bool) {
    return join_path(directory, k_guard_package);
  });
}

tree::Place place_of(sys::System& system, const Source& source) {
  return {.path = source.entry.path,
          .root = system.files().root(),
          .beneath = source.actor.beneath,
          .device = source.entry.device,
          .inode = source.entry.inode};
}

/// Returns a fingerprint of the source. It does not change when the environment is only used: Python writes to
/// __pycache__, and conda makes and removes further names of its files, which sets their ctime.
Result<std::string> fingerprint_of(sys::System& system, const Source& source, const plan::Say& say) {
  const auto place = place_of(system, source);
  return tree::survey(place, {}, say.progress("looking at " + place.path), false, "__pycache__")
      .map([](tree::Survey survey) { return std::move(survey.fingerprint); });
}

/// True if the source is what was copied. An earlier version has not noted that, and then it counts as the same.
Result<bool> is_as_copied(sys::System& system, const Source& source, const Original& original, const plan::Say& say) {
  if (original.survey.empty())
    return true;
  return fingerprint_of(system, source, say).map([&](const std::string& now) { return now == original.survey; });
}

/// Checks that the source is still what an earlier run has copied: users would lose sight of what they have installed
/// since.
Result<void> check_exchange(sys::System& system, const Sharing& sharing, const plan::Say& say) {
  TRY_ASSIGN(const auto same, is_as_copied(system, sharing.source, original_of(sharing), say));
  return same ? Result<void>{}
              : taken(sharing.shared, sharing.source, ", and " + sharing.source.path + " has changed since");
}

Result<void> fill(sys::System& system, Sharing& sharing, NewGeneration& making, const plan::Say& say) {
  const auto& source = sharing.source;
  const auto& state = sharing.state;
  auto& copy = making.tree;
  TRY_ASSIGN(making.record.original.survey, fingerprint_of(system, source, say));
  TRY_ASSIGN(copy, begin_copy(system, source, making.path()));
  tree::Options options;
  options.own = true;
  options.admit = admit_copied(state);
  options.removed_mode_bits = 0022; // no other user may write in it while it is made
  options.remove_others = true;     // an interrupted run may have left files that the original no longer has
  options.leave = k_copy_mark;
  options.bytes_per_second = sharing.bytes_per_second;
  options.total_files = state.files;
  options.total_bytes = state.bytes;
  const auto original = place_of(system, source);
  TRY_ASSIGN(sharing.copied, tree::copy(original, copy, options, say.progress("copying " + original.path)));
  TRY_ASSIGN(auto guard, add_guard(system, copy, sharing.settings.guard));
  CopyToRepair repair{.tree = copy, .prefix = making.environment.path(), .from = state.decision.replace};
  repair.uncompiled = std::move(guard);
  repair.runs_programs = system.identity().uid == source.entry.uid && !state.others_write;
  if (std::ranges::find(repair.from, source.path) == repair.from.end())
    repair.from.push_back(source.path);
  TRY(repair_copy(system, repair, say));
  if (sharing.settings.protect)
    TRY(write_marks(system, copy.path, making.environment.name));
  TRY(close_tree(copy, sharing.store.entry, sharing.settings.protect));
  making.sound = !has_errors(diagnose_unrepaired(state)); // the copy has the same faults as the original
  making.record.files = state.files;
  making.record.bytes = making.record.own_bytes = state.bytes;
  making.record.no_guard = sharing.no_guard;
  return {};
}

} // namespace

Result<Sharing> prepare_sharing(sys::System& system, StorePlace store, const std::string& name, Source source,
                                const std::string& active, const plan::Say& say) {
  TRY(check_places(system, store.entry, generations_path(store.path, name), say));
  TRY_ASSIGN(auto shared, probe_environment(system, store.path, name));
  TRY_ASSIGN(const auto step, next_step(shared, source));
  Sharing sharing{.store = std::move(store), .shared = std::move(shared), .source = std::move(source), .step = step};
  sharing.now = system.now();
  if (step == ShareStep::exchange)
    TRY(check_exchange(system, sharing, say));
  if (step != ShareStep::copy)
    return sharing;
  const auto& path = sharing.source.entry.path;
  tree::Measured copied;
  sharing.hidden = hidden_name(sharing.shared.next());
  for (const auto& unfinished : sharing.shared.unfinished) {
    TRY_ASSIGN(const auto begun, copy_at(system, sharing.source, join_path(sharing.shared.root.path, unfinished)));
    if (!begun)
      continue;
    sharing.hidden = unfinished;
    if (const auto measured = tree::measure(*begun, {}))
      copied = *measured;
  }
  EnvironmentRequest request{.path = path, .prefix = sharing.shared.path()};
  const auto store_now = system.entry({.path = sharing.store.path, .follow = true, .space = true});
  if (store_now.space && store_now.space->size_bytes > 0)
    request.most_bytes = store_now.space->free_bytes + copied.bytes;
  TRY_ASSIGN(sharing.state, probe(system, request, say.progress("reading " + path)));
  auto facts = probe_preflight(system, sharing.source, active);
  facts.state = sharing.state;
  facts.space = store_now.space; // the same number decides here: files that were not read for lack of room are refused
  facts.copied = copied;
  sharing.found = preflight(facts);
  return sharing;
}

Result<NewGeneration> make_shared_copy(sys::System& system, Sharing& sharing, const plan::Say& say) {
  TRY(make_places(system, sharing, say));
  if (sharing.step == ShareStep::exchange) {
    TRY_ASSIGN(auto held, hold(system, sharing.shared, sharing.settings.lease, say));
    TRY(check_exchange(system, sharing, say));
    return held;
  }
  GenerationRequest making;
  making.environment = sharing.shared;
  making.settings = sharing.settings;
  making.near = sharing.source.entry.path;
  making.record.command = shell_join({"sharefs", "conda", "share", sharing.shared.name, "--from", sharing.source.path});
  making.record.original = original_of(sharing);
  making.hidden = sharing.hidden;
  making.resumes = true;
  making.fill = [&](NewGeneration& made) { return fill(system, sharing, made, say); };
  TRY_ASSIGN(auto made, make_generation(system, making, say));
  TRY_ASSIGN(const auto same, is_as_copied(system, sharing.source, made.record.original, say));
  return same ? Result<NewGeneration>(std::move(made))
              : fail(ErrorCode::conflict, sharing.source.entry.path + " was changed while it was copied",
                     "run the command again when nobody works in it: it copies what has changed");
}

} // namespace sharefs::conda
