#include "conda/share.hpp"

#include "conda/environment_reader.hpp"
#include "conda/generation.hpp"
#include "conda/homes.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "base/visible.hpp"
#include "sys/find_processes.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <tuple>

namespace sharefs::conda {

namespace {

using sys::EntryKind;

constexpr std::uint32_t k_set_group = 02000;

/// Returns ": generation 1 was made by ..."; empty if that is not known.
std::string where_from(const SharedEnvironment& shared) {
  const auto* one = shared.find(std::max(shared.current, 1U));
  return one != nullptr && one->record ? fmt::format(": generation {} was made by {} (`{}`)", one->number,
                                                     one->record->user, one->record->command)
                                       : "";
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

constexpr std::size_t k_first_line_limit = 127; // bytes that the kernel reads, with `#!`

/// The severity of a finding for a copy with another prefix. Kinds without a row are repaired in the copy.
constexpr std::array<std::pair<Kind, Severity>, 12> k_severities{{{Kind::missing, Severity::warning},
                                                                  {Kind::altered, Severity::warning},
                                                                  {Kind::bad_record, Severity::error},
                                                                  {Kind::unreadable, Severity::error},
                                                                  {Kind::changing, Severity::error},
                                                                  {Kind::other_prefix, Severity::warning},
                                                                  {Kind::no_room, Severity::error},
                                                                  {Kind::editable, Severity::error},
                                                                  {Kind::set_id, Severity::error},
                                                                  {Kind::special, Severity::error},
                                                                  {Kind::foreign, Severity::error},
                                                                  {Kind::nobody, Severity::warning}}};

/// True for a path of the operating system, which is the same for all users and hosts.
bool is_of_system(const std::string& target) {
  constexpr std::array<std::string_view, 6> k_system{"/usr", "/lib", "/lib64", "/bin", "/etc", "/dev"};
  return std::ranges::any_of(k_system, [&](std::string_view top) { return is_under(target, std::string(top)); });
}

void add_findings(const EnvironmentState& state, Diagnoses& found) {
  for (const auto& [kind, severity] : k_severities) {
    auto only = state;
    only.closed_above.clear(); // SF308 is of no kind
    std::erase_if(only.found, [kind = kind](const Found& one) { return one.kind != kind; });
    for (auto& one : diagnose(only)) {
      one.severity = severity;
      found.push_back(std::move(one));
    }
  }
}

/// True if a user who may enter a tree with the mode `top` cannot read the entry.
bool is_closed(std::uint32_t top, const struct stat& status) {
  const auto wanted = bits_as_open_as(top, status.st_mode);
  return !S_ISLNK(status.st_mode) && (status.st_mode & wanted) != wanted;
}

tl::unexpected<Error> refused(const EnvironmentState& of, const std::string& path, const std::string& why) {
  return fail(ErrorCode::permission, join_path(of.path, path) + ": " + why + ", and is not shared",
              "see whose it is and why it lies there; take it out, or give it to the owner of the environment");
}

std::string whose(const struct stat& status) {
  return fmt::format("belongs to uid {}, not to the owner of the environment", status.st_uid);
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
  const auto entries = system.entries({.queries = {{.path = join_path(path, "condabin"), .links = sys::Links::none},
                                                   {.path = join_path(path, "envs"), .links = sys::Links::none},
                                                   {.path = join_path(path, "pkgs"), .links = sys::Links::none}}});
  found.base = entries[0].kind == EntryKind::directory && (entries[1].exists() || entries[2].exists());
  if (!active.empty() && normalize_path(active) == path)
    found.users.emplace_back("the shell that you work in, where it is active");
  for (const auto& process :
       sys::read_processes(system, sys::process_ids(system), {{.path = "exe"}, {.path = "cwd"}})) {
    const auto& program = process.entries[0].link_target;
    if (is_under(program, path) || is_under(process.entries[1].link_target, path))
      found.users.push_back(fmt::format("process {} ({})", process.pid, base_name(program)));
  }
  const auto& owner = source.actor.user;
  sys::EntryRequest above{{{.path = parent_path(path), .access = true}}};
  if (owner.uid != system.identity().uid)
    above.as = owner;
  const auto mounts = system.mounts();
  if (mounts && mounts->at(path) != nullptr)
    found.fixed = "it is a mount point";
  else if (const auto parent = system.entries(above).front(); !parent.writable)
    found.fixed = fmt::format("`{}` cannot write in {}{}", owner.name, parent.path,
                              parent.exists() ? "" : " (" + reason_of(parent) + ")");
  return found;
}

tree::Admit admit_copied(const EnvironmentState& of) {
  return [&of](const std::string& path, const struct stat& status) -> Result<bool> {
    if (status.st_uid != of.uid)
      return refused(of, path, whose(status));
    if (of.others_write && is_closed(of.mode, status))
      return refused(of, path, "only its owner can read it, and others may have put it there");
    return true;
  };
}

tree::Admit admit_opened(const EnvironmentState& of, std::uint32_t wanted) {
  return [&of, wanted](const std::string& path, const struct stat& status) -> Result<bool> {
    if (status.st_uid != of.uid && is_closed(wanted, status))
      return refused(of, path, whose(status));
    if (of.others_write && is_closed(of.mode & wanted, status))
      return refused(of, path, "only its owner can read it, and others may have put it there");
    return true;
  };
}

Diagnoses preflight(const Preflight& facts) {
  const auto& state = facts.state;
  Diagnoses found;
  const auto say = [&](Severity severity, const char* code, std::string message, std::string hint) {
    found.push_back({severity, code, state.path, std::move(message), std::move(hint), ""});
  };
  if (facts.base)
    say(Severity::error, "SF519", "it is the base environment: conda itself, with the other environments in it",
        "make one that can be shared: `conda create --name NAME --clone base`");
  if (!facts.users.empty())
    say(Severity::error, "SF520", "it is in use by " + first_of(facts.users),
        "`conda deactivate`, let its programs end, then run it again");
  if (!facts.fixed.empty())
    say(Severity::error, "SF526", "it cannot be moved aside for a link to the shared one: " + facts.fixed,
        "share it from a directory in which its owner may write: `--from PATH`");
  add_findings(state, found);
  std::vector<std::string> links;
  for (const auto& one : state.found)
    if (one.kind == Kind::outside_link && !is_of_system(one.detail))
      links.push_back(visible(one.path) + " -> " + visible(one.detail));
  if (!links.empty())
    say(Severity::error, "SF521",
        fmt::format("{} out of the environment, which others cannot follow: {}", count_of(links.size(), "link"),
                    links.front()),
        "put there what they lead to (`cp --remove-destination`); into a package cache: `conda config --set "
        "allow_softlinks false`, then install the packages again");
  if (state.others_write)
    say(Severity::warning, "SF522", "others than its owner may write in it, also while it is copied",
        "ask them not to; what changes during the copy is found and stops it");
  if (facts.space) {
    const auto& space = *facts.space;
    const auto bytes = state.bytes - std::min(state.bytes, facts.copied.bytes);
    const auto files = state.files - std::min(state.files, facts.copied.files);
    const std::string rest = facts.copied.files > 0 ? "of it are still to be copied" : "are to be copied";
    const auto hint =
        "`sharefs conda list` shows what is there: `sharefs conda gc NAME` deletes what nobody needs of it";
    if (space.size_bytes > 0 && space.free_bytes < bytes)
      say(Severity::error, "SF523",
          fmt::format("{} {}, and the store has room for {}", format_bytes(bytes), rest,
                      format_bytes(space.free_bytes)),
          hint);
    if (space.files > 0 && space.free_files < files)
      say(Severity::error, "SF523",
          fmt::format("{} {}, and the store can take {} more (inodes)", count_of(files, "file"), rest,
                      space.free_files),
          hint);
  }
  const auto interpreter = join_path(state.decision.right, state.python.empty() ? "bin/python" : state.python);
  if (interpreter.size() + 2 > k_first_line_limit)
    say(Severity::warning, "SF524",
        fmt::format("with {} the first line of a script is longer than the {} bytes that a kernel reads",
                    state.decision.right, k_first_line_limit),
        "scripts of other programs than Python then need the environment to be active (`#!/usr/bin/env`); a shorter "
        "`conda.store` avoids it");
  std::vector<std::string> closed;
  for (const auto& one : state.found)
    if (one.kind == Kind::closed)
      closed.push_back(one.path);
  const auto paths = count_of(closed.size(), "path");
  if (!closed.empty() && state.others_write)
    say(Severity::error, "SF532",
        fmt::format("{} that not everybody can read, where others could have put private files of its owner: {}", paths,
                    first_of(closed)),
        "see what they are: take out what is private, open what is meant (`chmod go+rX PATH`)");
  else if (!closed.empty())
    say(Severity::info, "SF525",
        fmt::format("{} that only the owner can read can be read by all users of the store", paths), "");
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
  if (shared.current != 0)
    return taken(shared, source, "");
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
  return fail(ErrorCode::conflict,
              fmt::format("{} has generations of `{}` already{}", shared.store, shared.name, where_from(shared)),
              fmt::format("`sharefs conda rollback {} --to N` shows one of them again", shared.name));
}

tl::unexpected<Error> taken(const SharedEnvironment& shared, const Source& source, const std::string& since) {
  return fail(ErrorCode::conflict, fmt::format("`{}` is shared already{}{}", shared.name, where_from(shared), since),
              fmt::format("`sharefs conda link {} --backup` links to it; this one under another name: `sharefs conda "
                          "share NAME --from {}`",
                          shared.name, shell_quote(source.path)));
}

Original original_of(const Sharing& sharing) {
  const auto& source = sharing.source;
  Original original{source.path, join_path(parent_path(source.path), backup_name(base_name(source.path), sharing.now)),
                    source.entry.inode};
  if (sharing.step == ShareStep::exchange) // the record of the interrupted share has the path
    if (const auto* noted = newest_original(sharing.shared, source.entry.uid))
      original = *noted;
  if (source.entry.path != source.path) // it was moved aside already
    original.kept = source.entry.path;
  return original;
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
    plan.add(group, "the path of the shared environment", link_to(shared, number));
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
