#include "conda/share.hpp"

#include "conda/generation.hpp"
#include "conda/homes.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "sys/find_processes.hpp"
#include "sys/fs/sha256.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <tuple>

namespace sharefs::conda {

namespace {

using sys::EntryKind;

constexpr std::uint32_t k_set_group = 02000;

std::string where_from(const Generation& record) {
  return fmt::format("generation {} was made by {} (`{}`)", record.number, record.user, record.command);
}

/// Returns the original of the newest generation that was copied from a directory of this owner; nullptr if there is
/// none.
const Original* newest_original(const SharedEnvironment& shared, std::uint32_t owner) {
  const Original* newest = nullptr;
  for (const auto& one : shared.generations)
    if (const auto* original = one.original(owner))
      newest = original;
  return newest;
}

plan::ExchangeForLink exchange_of(const Sharing& sharing) {
  const auto& source = sharing.source;
  plan::ExchangeForLink exchange;
  exchange.path = source.path;
  exchange.to = original_of(sharing).kept;
  exchange.target = sharing.shared.path();
  exchange.device = source.entry.device;
  exchange.inode = source.entry.inode;
  exchange.actor = source.actor;
  return exchange;
}

} // namespace

Result<std::string> probe_worker(sys::System& system, const Source& source, const std::string& store,
                                 const std::optional<sys::User>& as) {
  sys::EntryRequest request;
  request.as = as;
  request.deadline = std::chrono::seconds(10); // a write test waits for the server's disk
  request.queries = {{.path = join_path(source.entry.path, "conda-meta"), .list = true, .links = sys::Links::none},
                     {.path = store, .follow = true, .write_test = true}};
  const auto entries = system.entries(request);
  const auto name = as ? as->name : system.identity().user;
  const auto& environment = entries[0];
  const auto& test = entries[1];
  if (environment.kind == EntryKind::missing)
    return fail(ErrorCode::not_found, source.entry.path + " is no conda environment: it has no directory `conda-meta`",
                "`conda env list` knows where environments lie");
  if (environment.kind != EntryKind::directory || environment.error_number != 0)
    return fmt::format("{} cannot read {} ({})", name, source.entry.path, reason_of(environment));
  if (test.error_number != 0 && test.error().code != ErrorCode::permission)
    return fail(test.error()); // a full disk, for example, is full for every user
  if (test.error_number != 0 || !test.made)
    return fmt::format("{} cannot write in {} ({})", name, store, reason_of(test));
  if (!as && system.identity().uid == 0 && test.made->uid != 0)
    return fmt::format("the server takes root for nobody in {} (root_squash)", store);
  return "";
}

Preflight probe_preflight(sys::System& system, const Source& source, const std::string& active) {
  Preflight found;
  const auto& path = source.entry.path;
  auto entries = system.entries({.queries = {{.path = join_path(path, "condabin"), .links = sys::Links::none},
                                             {.path = join_path(path, "envs"), .links = sys::Links::none},
                                             {.path = join_path(path, "pkgs"), .links = sys::Links::none}}});
  found.base = entries[0].kind == EntryKind::directory && (entries[1].exists() || entries[2].exists());
  if (!active.empty() && normalize_path(active) == path)
    found.users.emplace_back("the shell that you work in, where it is active");
  const auto pids = sys::process_ids(system, std::chrono::seconds(3));
  sys::EntryRequest links;
  for (const int pid : pids)
    for (const char* link : {"exe", "cwd"})
      links.queries.push_back({.path = fmt::format("/proc/{}/{}", pid, link)});
  entries = system.entries(links);
  for (std::size_t index = 0; index + 1 < entries.size(); index += 2)
    for (const auto& one : {entries[index], entries[index + 1]})
      if (is_under(one.link_target, path)) {
        found.users.push_back(fmt::format("process {} ({})", pids[index / 2], base_name(entries[index].link_target)));
        break;
      }
  return found;
}

Diagnoses diagnose_places(const sys::Entry& store, const std::vector<sys::Entry>& places, std::uint32_t self) {
  constexpr std::uint32_t k_others_write = 0002, k_group_or_others_write = 0022, k_sticky = 01000;
  Diagnoses found;
  if ((store.mode & k_group_or_others_write) != 0 && (store.mode & k_sticky) == 0)
    return found; // a user who may write in the store could replace STORE/ENV as well
  for (const auto& place : places) {
    if (!place.exists())
      continue;
    const bool ours = place.uid == 0 || place.uid == store.uid || place.uid == self;
    if (ours &&
        (place.kind != EntryKind::directory || (place.mode & k_others_write) == 0 || (place.mode & k_sticky) != 0))
      continue;
    found.push_back({Severity::error, "SF529", place.path,
                     ours ? "all users may write there, and put another environment in the place of the shared one"
                          : fmt::format("it belongs to uid {}, who could put another environment in the place of the "
                                        "shared one",
                                        place.uid),
                     ours ? "`chmod o-w " + shell_quote(place.path) + "`, once you know what lies in it"
                          : fmt::format("see what lies there, then move it away: `mv {0} {0}.of-{1}`",
                                        shell_quote(place.path), place.uid),
                     ""});
  }
  return found;
}

Result<ShareStep> next_step(const SharedEnvironment& shared, const Source& source) {
  const bool linked = source.entry.kind == EntryKind::symlink;
  if (shared.current != 0 && linked)
    return ShareStep::nothing;
  // The inode is compared, because a user may have made another directory at this path since it was shared.
  const auto* noted = newest_original(shared, source.entry.uid);
  if (shared.current != 0 && noted != nullptr && noted->path == source.path && noted->inode == source.entry.inode)
    return ShareStep::exchange;
  const auto* current = shared.find(std::max(shared.current, 1U));
  const auto from = current != nullptr && current->record ? ": " + where_from(*current->record) : "";
  if (shared.current != 0)
    return fail(ErrorCode::conflict, fmt::format("`{}` is shared already{}", shared.name, from),
                fmt::format("`sharefs conda link {} --backup` links to it; this one under another name: `sharefs conda "
                            "share NAME --from {}`",
                            shared.name, shell_quote(source.path)));
  if (shared.entry.kind == EntryKind::directory)
    return fail(ErrorCode::conflict, fmt::format("{} is there already, as a plain directory", shared.path()),
                hint_to_share(shared));
  if (shared.entry.exists())
    return fail(ErrorCode::conflict, fmt::format("{} is there already, and no environment of sharefs", shared.path()),
                "move it away first");
  // An interrupted or undone share leaves its generation. Nothing is continued there, because the original may have
  // changed, so a new copy is made.
  const auto of_a_share = [](const StoredGeneration& one) { return one.record && !one.record->original.path.empty(); };
  if (linked ? shared.generations.empty() : std::ranges::all_of(shared.generations, of_a_share))
    return ShareStep::copy;
  return fail(ErrorCode::conflict, fmt::format("{} has generations of `{}` already{}", shared.store, shared.name, from),
              fmt::format("`sharefs conda rollback {} --to N` shows one of them again", shared.name));
}

std::string copy_mark(const Source& source) {
  // The path itself would be replaced when the copy gets another prefix, so its checksum is written.
  return fmt::format("{} {}\n", source.entry.inode, sys::sha256(source.path));
}

bool is_copy_of(const Source& source, const sys::Entry& directory, const sys::Entry& mark, std::uint32_t self) {
  constexpr std::uint32_t k_others_write = 0022;
  return directory.kind == EntryKind::directory && directory.uid == self && (directory.mode & k_others_write) == 0 &&
         mark.kind == EntryKind::file && mark.uid == self && mark.content == copy_mark(source);
}

Original original_of(const Sharing& sharing) {
  const auto& source = sharing.source;
  if (sharing.step == ShareStep::exchange) // the record of the interrupted share has the path
    if (const auto* noted = newest_original(sharing.shared, source.entry.uid))
      return *noted;
  return {source.path, join_path(parent_path(source.path), backup_name(base_name(source.path), sharing.now)),
          source.entry.inode};
}

plan::Plan plan_share(const Sharing& sharing) {
  plan::Plan plan;
  const auto& [shared, source, state] = std::tie(sharing.shared, sharing.source, sharing.state);
  const auto& group = shared.name;
  if (sharing.step == ShareStep::copy) {
    const auto number = shared.next();
    const auto root = generations_path(shared.store, shared.name);
    plan.notes.push_back(fmt::format("first {} ({}) {} copied from {} to the store, compared, and given the prefix {}",
                                     count_of(state.files, "file"), format_bytes(state.bytes),
                                     state.files == 1 ? "is" : "are", source.path, shared.path()));
    plan.add_bookkeeping(group, "the copy is complete",
                         plan::Rename{join_path(root, sharing.hidden), shared.path(number), std::nullopt}, true);
    plan.add(group, "the path of the shared environment",
             plan::make_link(shared.path(), generation_link(shared.name, number)));
  }
  if (sharing.step <= ShareStep::exchange)
    plan.add(group,
             source.entry.fs_type.starts_with("nfs")
                 ? "the original is kept; for a moment nothing is there, since NFS cannot exchange two names"
                 : "the original is kept; delete it when all is well",
             exchange_of(sharing));
  return plan;
}

std::string hint_to_share(const SharedEnvironment& shared) {
  const auto aside = join_path(shared.store, "." + shared.name);
  return fmt::format("move it aside, and share it from there: `mv {0} {1} && sharefs conda share {2} --from {1}`",
                     shell_quote(shared.path()), shell_quote(aside), shared.name);
}

std::uint32_t generation_mode(std::uint32_t store_mode, bool protect) {
  const bool group_owns = (store_mode & k_set_group) != 0;
  const std::uint32_t group = group_owns ? 070U : store_mode & 050U;
  return (0700U | group | (store_mode & 05U) | (store_mode & k_set_group)) & ~(protect ? 0222U : 0U);
}

} // namespace sharefs::conda
