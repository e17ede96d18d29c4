#include "conda/staged_path.hpp"

#include "base/argv.hpp"
#include "base/path.hpp"
#include "base/try.hpp"
#include "conda/homes.hpp"
#include "conda/staged_images.hpp"
#include "plan/apply.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace sharefs::conda {

namespace {

/// Smaller files are copied from the share, because ssh to another node takes longer.
constexpr std::uint64_t k_handed_on = 4U << 20U;

/// Bits that nothing in a copy by a list gets: all of it has one owner and group, and on the share a file may be
/// writable for another group.
constexpr std::uint32_t k_others_write = 0022;

/// True if each file of the list is in the copy with its size and time. A write to a file changes its time.
bool is_as_listed(sys::System& system, const tree::Listing& files, const std::string& copy) {
  const auto& listed = files.entries;
  sys::EntryRequest request;
  for (const auto& one : listed)
    request.queries.push_back({.path = join_path(copy, one.path), .links = sys::Links::none});
  const auto entries = system.entries(request);
  return std::ranges::equal(listed, entries, [](const tree::Listed& one, const sys::Entry& entry) {
    return !S_ISREG(one.mode) || (entry.size == one.bytes && entry.mtime == one.mtime);
  });
}

} // namespace

Result<PathStagingRequest> find_directory(sys::System& system, const std::string& asked,
                                          const std::vector<std::string>& readers, const std::set<std::string>& copies,
                                          bool any) {
  const auto seen = read_as_permitted(system, {.queries = {{.path = asked, .follow = true, .list = true}}}, readers);
  const auto& entry = seen.entries.front();
  if (entry.kind == sys::EntryKind::unknown) {
    auto error = entry.error();
    if (error.code == ErrorCode::permission)
      error.hint = system.identity().uid == 0
                       ? "root may be nobody on its server (root_squash), and no user of `conda.homes` may see it: run "
                         "it as one who may"
                       : "run it as a user who may see it";
    return fail(std::move(error));
  }
  if (entry.exists() && entry.kind != sys::EntryKind::directory)
    return fail(ErrorCode::usage, asked + " is no directory",
                fmt::format("stage the one that it lies in: {}", shell_quote(parent_path(asked))));
  if (entry.kind != sys::EntryKind::directory)
    return fail(ErrorCode::not_found, fmt::format("there is no directory {}", asked),
                "name a directory of the share, or an environment of the store");
  if (entry.resolved.find('\n') != std::string::npos) // a mark has one field in each line
    return fail(ErrorCode::unsupported, entry.resolved + " has a line break in its name",
                "stage a directory that has none");
  PathStagingRequest found;
  found.path = entry.resolved;
  found.readers = readers;
  auto& reader = found.how.copying.reader = seen.by;
  if (!reader) // the NFS client may answer root from its cache for the directory, but not for the one above
    reader = read_as_permitted(system, {.queries = {{.path = parent_path(asked), .list = true}}}, readers).by;
  if (!entry.shared)
    for (const auto& copy : list_staged_paths(system, copies, {0}))
      if (copy.is_bound && copy.source() == asked)
        found.bound = survey_in(copy.what().state);
  if (!entry.shared && !found.bound && !any) // a server has its own share without a mount
    return fail(ErrorCode::usage, asked + " lies on this host's own disk already",
                "`sharefs mirror push` brings it to other nodes");
  return found;
}

std::string state_of(const StagedCopy& copy) {
  const auto what = copy.what();
  const std::string state = what.source.empty()   ? "cut off"
                            : what.sha256.empty() ? "files"
                            : copy.is_mounted()   ? (copy.is_on_share() ? "mounted from the share" : "mounted")
                                                  : "not mounted";
  return copy.is_bound ? state + ", in place of the share" : state;
}

bool is_staged_from(const StagedCopy& copy, const std::string& directory) {
  const auto copies = staged_directory("", 0, directory).substr(2); // without "/0"
  return copy.source() == directory || parent_path(copy.tree.path).ends_with(copies);
}

Result<Staging> plan_path_staging(sys::System& system, const PathStagingRequest& request, const PackedPath& packed) {
  Staging staging{.survey = packed.survey};
  auto& wanted = staging.wanted;
  wanted.uid = static_cast<unsigned>(system.identity().uid);
  wanted.name = base_name(request.path);
  wanted.keeps_others = true;
  staging.source = request.path;
  staging.size = {.files = packed.survey.files, .bytes = packed.survey.bytes};
  staging.drops = "stage --drop " + shell_quote(request.path);
  staging.copies = probe_staged(system, request.at, wanted.uid, request.path);
  TRY(check_stage(system, staging.copies.directory, request.at, !request.is_own, "stage " + shell_quote(request.path),
                  "stage.at"));
  TRY_ASSIGN(wanted.access, stage_access(system, request.path, request.how.copying.reader));
  const auto store = probe_images(system, request);
  staging.image = probe_image(system, packed.image, 0, request.how.copying.reader);
  TRY(staging.image.check());
  staging.why_files = !store.untrusted.empty()      ? store.untrusted
                      : staging.image.exists()      ? why_no_mount(system, staging.image, store.owner)
                      : is_few_large(packed.survey) ? "they are few and large"
                                                    : why_no_images(system);
  if (staging.why_files.empty() && !staging.image.exists())
    staging.why_files = "there is no image of it in " + request.store;
  wanted.what = {.source = request.path, .state = text_of(packed.survey)};
  if (request.how.copying.reader)
    wanted.what.reader = request.how.copying.reader->uid;
  if (staging.why_files.empty()) {
    wanted.what.sha256 = staging.image.note->sha256;
  } else if (store.untrusted.empty()) {
    TRY_ASSIGN(staging.files, read_list(system, request, packed.image, store.owner));
  }
  const auto& hash = staging.why_files.empty() ? wanted.what.sha256 : packed.survey.fingerprint;
  wanted.copy = hash.substr(0, k_hash_digits);
  const auto* there = staging.copies.find(wanted.copy);
  if (there != nullptr && !wanted.what.reader) // root was answered from a cache, and the server may refuse root
    wanted.what.reader = there->what().reader;
  wanted.is_doubtful =
      there != nullptr && there->is_whole() && staging.files && !is_as_listed(system, *staging.files, staging.path());
  TRY(plan_copy(system, staging, "free some (`sharefs stage --list`, `--drop`), or set `stage.at` to a larger disk"));
  auto& plan = staging.made.plan;
  const auto copy = join_path(staging.copies.directory.resolved, wanted.copy);
  const auto mounts = system.mounts();
  if (request.binds && mounts && !mounts->is_bind(request.path, copy)) {
    const auto bind = bind_of(copy, wanted.what);
    if (auto older = older_bind(system, bind, *mounts))
      plan.add(wanted.name, k_why_older, std::move(*older));
    plan.add(wanted.name, "whoever asks for it on the share reads the copy", bind);
  }
  for (const auto& one : staging.copies.copies)
    if (one.mark.kind == sys::EntryKind::file && staging.made.copies && one.name() != wanted.copy)
      plan.notes.push_back(fmt::format(
          "an older copy stays, for those who read it; `sharefs stage --drop {}` takes it away", one.name()));
  staging.nothing = copy + " is there";
  if (request.bound)
    staging.nothing += fmt::format(", over {}: what is changed on the share is seen after `sharefs stage --drop`",
                                   shell_quote(request.path));
  return staging;
}

namespace {

/// Sets the owner, group and mode of a directory in a copy: this user's while files are copied, then the final ones.
Result<void> set_directory_access(sys::System& system, const sys::Entry& entry, std::uint32_t uid, std::uint32_t gid,
                                  std::uint32_t mode) {
  if (entry.kind != sys::EntryKind::directory)
    return fail(entry.exists() ? Error{ErrorCode::conflict, entry.path + ": is no directory", "", ""} : entry.error());
  const plan::SetAccess step{.path = entry.path,
                             .before = std::nullopt, // it may have inherited a default ACL, which is not in the entry
                             .after = {uid, gid, mode, ""},
                             .identity = {entry.device, entry.inode}};
  return plan::apply_action(step, system).map([](plan::Outcome) {});
}

/// Gives the directories of the copy their final owners and modes, once all files are copied. Until then they belong to
/// this user, so that nobody else can replace anything in them.
Result<void> open_directories(sys::System& system, const Staging& staging) {
  std::vector<const tree::Listed*> listed;
  sys::EntryRequest request;
  for (const auto& one : staging.files->entries)
    if (S_ISDIR(one.mode)) {
      listed.push_back(&one);
      request.queries.push_back({.path = join_path(staging.path(), one.path), .links = sys::Links::none});
    }
  const auto entries = system.entries(request);
  for (auto at = entries.size(); at-- > 0;) { // inner directories first
    const auto& entry = entries[at];
    const bool gives = system.identity().uid == 0;
    TRY(set_directory_access(system, entry, gives ? staging.files->uid : entry.uid,
                             gives ? staging.files->gid : entry.gid, listed[at]->mode & 03777U & ~k_others_write));
  }
  return {};
}

/// Copies each file of the list, from other nodes if they have it.
Result<void> fetch_files(sys::System& system, const PathStagingRequest& request, const Staging& staging,
                         const plan::Say& say) {
  const auto& listing = *staging.files;
  const auto copy = staging.path();
  const auto progress = say.progress("copying " + request.path);
  tree::FetchReport sum;
  tree::Progress done;               // sum of the earlier files
  std::set<std::string> passed_over; // upstreams that failed, and are not asked again
  const auto begin = sys::Clock::now();
  const auto& root = system.files().root();
  const auto self = system.identity();
  auto options = request.how.copying;
  options.anew = "it has changed since the list of files was made: run the command again, not `nodes resume`";
  tree::FileAttributes given;
  if (self.uid == 0) // only root can give a file to another user
    given = {.uid = listing.uid, .gid = listing.gid};
  for (const auto& one : listing.entries)
    done.total_bytes += one.bytes;
  for (const auto& one : listing.entries) {
    const auto to = join_path(copy, one.path);
    if (S_ISDIR(one.mode)) {
      // A link that an earlier list has left here is not followed.
      TRY(plan::apply_action(plan::make_directory(to, 0700, {}, true), system));
      const auto there = system.entry({.path = to, .links = sys::Links::none}); // an interrupted run may have made it
      TRY(set_directory_access(system, there, self.uid, there.gid, 0700));
      continue;
    }
    if (S_ISLNK(one.mode)) {
      TRY(plan::apply_action(plan::make_link(to, one.target), system));
      if (self.uid == 0) // a link of root's is followed where others' are not, and its owner here can move it there
        TRY(tree::give_link({.path = to, .root = root, .guarded = true}, listing.uid, listing.gid));
      continue;
    }
    auto upstreams = one.bytes < k_handed_on ? std::vector<tree::Upstream>{} : request.how.upstreams(to, one.bytes);
    std::erase_if(upstreams, [&](const tree::Upstream& upstream) { return passed_over.contains(upstream.name); });
    const auto report = [&](const tree::Progress& now) {
      auto all = now;
      all.bytes += done.bytes;
      all.total_bytes = done.total_bytes;
      all.took = std::chrono::duration_cast<std::chrono::milliseconds>(sys::Clock::now() - begin);
      if (progress)
        progress(all);
    };
    given.mode = one.mode & ~k_others_write;
    given.mtime = one.mtime;
    TRY_ASSIGN(const auto fetched, tree::fetch({.path = join_path(request.path, one.path), .root = root},
                                               {.path = to, .root = root, .guarded = true}, {one.sha256, one.bytes},
                                               options, report, upstreams, given));
    for (const auto& upstream : upstreams) {
      if (upstream.name == fetched.by)
        break;
      passed_over.insert(upstream.name);
    }
    sum.bytes += fetched.bytes;
    sum.kept += fetched.kept;
    if (!upstreams.empty())
      sum.by = fetched.by;
    if (sum.passed_over.empty())
      sum.passed_over = fetched.passed_over;
    done.bytes += one.bytes;
  }
  TRY(open_directories(system, staging));
  say.message(text_of(copy, sum));
  request.how.fetched(sum);
  return {};
}

/// Removes interrupted copies of earlier content of the directory, which no command will continue.
Result<void> remove_cut_off(sys::System& system, const PathStagingRequest& request, const StageRequest& wanted) {
  auto left = probe_staged(system, request.at, wanted.uid, request.path).copies;
  std::erase_if(left, [&](const StagedCopy& copy) { return !copy.is_cut_off() || copy.name() == wanted.copy; });
  for (const auto& step : plan_drop(left).steps)
    TRY(plan::apply_action(step.action, system));
  return {};
}

} // namespace

Result<std::optional<plan::HostLock>> copy_path(sys::System& system, const PathStagingRequest& request,
                                                const Staging& staging, const plan::Say& say) {
  if (!staging.made.copies)
    return std::nullopt;
  TRY_ASSIGN(auto alone, begin_copy(system, request.how, staging));
  TRY(remove_cut_off(system, request, staging.wanted));
  if (staging.files && !staging.made.by_image) {
    TRY(fetch_files(system, request, staging, say));
    return alone;
  }
  TRY(copy_source(system, request.how, staging, say));
  if (!staging.made.by_image) // the directory may have changed during the copy
    TRY(check_unchanged(system, request, staging.survey, say));
  return alone;
}

std::vector<StagedCopy> list_staged_paths(sys::System& system, const std::set<std::string>& directories,
                                          const std::set<unsigned>& makers) {
  auto found = find_copies(system, directories, makers);
  std::erase_if(found, [](const StagedCopy& copy) { return copy.what().source.empty() && !copy.is_cut_off(); });
  return found;
}

std::string copy_of_root(sys::System& system, const std::string& copies, const std::string& path,
                         const tree::Survey& survey) {
  if (system.identity().uid == 0)
    return {};
  for (const auto& one : list_staged_paths(system, {copies}, {0}))
    if (one.source() == path && survey_in(one.what().state) == survey && one.is_whole())
      return one.tree.path;
  return {};
}

plan::Plan plan_drop(const std::vector<StagedCopy>& staged) {
  plan::Plan plan;
  for (const auto& copy : staged) {
    const auto& group = copy.tree.path;
    const bool is_older_of_it = copy.older && copy.older->source.starts_with(image_path(group));
    if (copy.is_bound || is_older_of_it)
      plan.add(group, "the path on the share is the share's again",
               copy.older.value_or(plan::unmount_of(bind_of(group, copy.what()))), true);
    add_removal(copy, group, "its image", true, plan);
  }
  return plan;
}

} // namespace sharefs::conda
