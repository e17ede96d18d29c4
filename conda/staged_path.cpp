#include "conda/staged_path.hpp"

#include "base/argv.hpp"
#include "base/number.hpp"
#include "base/path.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "plan/apply.hpp"
#include "sys/fs/sha256.hpp"
#include "sys/mounting/image_types.hpp"
#include "sys/process/child.hpp"
#include "sys/process/wire.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace sharefs::conda {

namespace {

constexpr std::uint64_t k_large_on_average = 64U << 20U;
/// A smaller file comes from the share: ssh to another node takes longer.
constexpr std::uint64_t k_handed_on = 4U << 20U;
constexpr std::size_t k_largest_list = 16U << 20U;
constexpr std::uint32_t k_others_write = 0022;
const std::string k_unfinished = "new-"; // begins the name of an image that is being made

CopyMark mark_of(const PathStagingRequest& request, const PackedPath& packed, const PathStaging& staging) {
  CopyMark mark{.source = request.path, .state = text_of(packed.survey)};
  if (staging.why_files.empty())
    mark.sha256 = staging.image.note->sha256;
  if (request.how.as)
    mark.reader = request.how.as->uid;
  return mark;
}

/// STORE/NAME-, by which all images of a directory are known. More is added to it, and a file system takes NAME_MAX
/// bytes.
std::string image_prefix(const std::string& path) {
  constexpr std::size_t k_most_of_name = 200;
  return base_name(path).substr(0, k_most_of_name) + "-" + sys::sha256(path).substr(0, 8) + "-";
}

std::string list_path(const std::string& packed) {
  return packed + ".files";
}

/// The directory of images. It is listed, and the one above: another node may just have made what a client of NFS
/// believes for a while not to be there.
sys::Entry probe_store(sys::System& system, const PathStagingRequest& request) {
  return system
      .entries({.queries = {{.path = parent_path(request.store), .follow = true, .list = true},
                            {.path = request.store, .follow = true, .list = true}},
                .as = request.how.as})
      .back();
}

/// What lies in the directory, if root or the owner of the store has noted it, and nobody else could have.
std::optional<tree::Listing> read_list(sys::System& system, const PathStagingRequest& request,
                                       const std::string& packed, std::uint32_t store_owner) {
  const auto entry =
      system
          .entries(
              {.queries = {{.path = list_path(packed), .read_bytes = k_largest_list, .links = sys::Links::trusted}},
               .as = request.how.as})
          .front();
  if (entry.kind != sys::EntryKind::file || (entry.uid != 0 && entry.uid != store_owner) ||
      (entry.mode & k_others_write) != 0)
    return std::nullopt;
  sys::WireReader reader(entry.content);
  auto listing = reader.get<tree::Listing>();
  const bool inside = std::ranges::all_of(listing.entries, [](const tree::Listed& one) {
    return normalize_path("/" + one.path) == "/" + one.path && (!one.path.empty() || S_ISDIR(one.mode));
  });
  return reader.ok() && inside ? std::optional(std::move(listing)) : std::nullopt;
}

} // namespace

std::string packed_image(const PathStagingRequest& request, const tree::Survey& survey) {
  return join_path(request.store, image_prefix(request.path) + survey.fingerprint.substr(0, k_hash_digits));
}

namespace {

Result<tree::Survey> survey_directory(sys::System& system, const PathStagingRequest& request, const plan::Say& say) {
  tree::Options options;
  options.as = request.how.as;
  auto survey = tree::survey({.path = request.path, .root = system.files().root()}, options,
                             say.progress("looking at " + request.path));
  if (!survey && survey.error().code == ErrorCode::permission)
    survey.error().hint = "run the command as a user who may read all that it holds, or stage a directory beside that";
  return survey;
}

/// What was read of the directory is what it held when it was looked at: by that it is known again.
Result<void> check_unchanged(sys::System& system, const PathStagingRequest& request, const tree::Survey& before,
                             const plan::Say& say) {
  const auto now = request.bound ? Result<tree::Survey>(before) : survey_directory(system, request, say);
  if (!now)
    return fail(now.error());
  return *now == before ? Result<void>{}
                        : fail(ErrorCode::conflict, request.path + " has changed while it was read",
                               "run the command again when nobody writes there");
}

} // namespace

Result<PackedPath> survey_path(sys::System& system, const PathStagingRequest& request, const plan::Say& say) {
  const auto store = probe_store(system, request);
  if (is_under(store.resolved, request.path))
    return fail(ErrorCode::usage,
                fmt::format("{} holds {}, where images of directories lie", request.path, request.store),
                "stage what lies in it, or set `stage.store` in sharefs.yaml to another directory of the share");
  auto survey = request.bound ? Result<tree::Survey>(*request.bound) : survey_directory(system, request, say);
  if (!survey)
    return fail(survey.error());
  PackedPath packed{.survey = std::move(*survey), .image = {}};
  packed.image = packed_image(request, packed.survey);
  const auto image = probe_image(system, packed.image, 0, request.how.as);
  // What others could have written is made anew by whoever can make one that is trusted.
  const auto uid = static_cast<std::uint32_t>(system.identity().uid);
  const bool makes_trusted = uid == 0 || uid == store.uid;
  packed.exists = (image.exists() && (image.is_trusted(store.uid) || !makes_trusted)) ||
                  read_list(system, request, packed.image, store.uid);
  return packed;
}

std::string text_of(const tree::Survey& survey) {
  return fmt::format("{}:{}:{}", survey.fingerprint, survey.files, survey.bytes);
}

std::optional<tree::Survey> survey_in(std::string_view text) {
  const auto parts = split(text, ':');
  const auto files = parts.size() == 3 ? parse_number<std::uint64_t>(parts[1]) : std::nullopt;
  const auto bytes = files ? parse_number<std::uint64_t>(parts[2]) : std::nullopt;
  if (!bytes || !is_hash(parts[0]))
    return std::nullopt;
  return tree::Survey{.files = *files, .bytes = *bytes, .fingerprint = parts[0]};
}

std::optional<tree::Survey> StagedPath::survey() const {
  return survey_in(copy.what().state);
}

bool StagedPath::is_whole() const {
  const auto what = copy.what();
  return !what.source.empty() &&
         (what.sha256.empty() ? copy.tree.kind == sys::EntryKind::directory : copy.is_mounted());
}

std::string StagedPath::state() const {
  const auto what = copy.what();
  const std::string state = what.source.empty()   ? "cut off"
                            : what.sha256.empty() ? "files"
                            : copy.is_mounted()   ? "mounted"
                                                  : "not mounted";
  return is_bound ? state + ", in place of the share" : state;
}

bool StagedPath::is_of(const std::string& directory) const {
  const auto copies = staged_directory("", 0, parent_path(directory), base_name(directory)).substr(2); // behind "/0"
  return path == directory || parent_path(copy.tree.path).ends_with(copies);
}

bool is_few_large(const tree::Survey& survey) {
  return survey.files > 0 && survey.bytes / survey.files >= k_large_on_average;
}

namespace {

/// Images and lists of what the directory held before, and images that were being made when their command was killed:
/// one that is being made is written all the time, by the server's clock.
void remove_older(sys::System& system, const PathStagingRequest& request, const PackedPath& packed) {
  constexpr std::int64_t k_abandoned = 3600; // seconds
  const auto prefix = image_prefix(request.path);
  sys::EntryRequest unfinished{.queries = {{.path = image_path(packed.image), .links = sys::Links::trusted},
                                           {.path = list_path(packed.image), .links = sys::Links::trusted}}};
  for (const auto& name : system.entry({.path = request.store, .follow = true, .list = true}).names) {
    const auto path = join_path(request.store, name);
    if (name.starts_with(prefix) && !path.starts_with(packed.image))
      std::ignore = system.files().remove(path);
    if (name.starts_with(k_unfinished) && name.ends_with(image_path("")))
      unfinished.queries.push_back({.path = path, .links = sys::Links::none});
  }
  const auto entries = system.entries(unfinished);
  const auto made = std::max(entries[0].mtime, entries[1].mtime); // just now
  for (auto one = entries.begin() + 2; one != entries.end(); ++one)
    if (one->kind == sys::EntryKind::file && one->mtime < made - k_abandoned)
      std::ignore = system.files().remove(one->path);
}

Result<void> write_list(sys::System& system, const PathStagingRequest& request, const PackedPath& packed,
                        const StageAccess& access, const plan::Say& say) {
  tree::Options options;
  options.total_bytes = packed.survey.bytes;
  const auto listing = tree::list_contents({.path = request.path, .root = system.files().root()}, options,
                                           say.progress("reading " + request.path));
  if (!listing)
    return fail(listing.error());
  if (auto unchanged = check_unchanged(system, request, packed.survey, say); !unchanged)
    return unchanged;
  const auto path = list_path(packed.image);
  if (auto cleared = clear_place(system, path); !cleared)
    return cleared;
  if (auto written = system.files().write_if(path, std::nullopt, sys::WireWriter().put(*listing).bytes(), 0400);
      !written)
    return written;
  const auto admitted = admit(system.entry({.path = path}), {access.mode & 0444U, access.gid});
  return admitted ? plan::apply_action(*admitted, system).map([](plan::Outcome) {}) : Result<void>{};
}

/// `path` may lie in a store of environments that nobody has made yet: it gets the mode of the directory above it.
Result<void> make_store(sys::System& system, const std::string& path) {
  constexpr std::uint32_t k_but_set_id = 01777; // the group is inherited
  const auto store = system.entry({.path = parent_path(path), .follow = true});
  if (store.kind == sys::EntryKind::missing) {
    const auto above = system.entry({.path = store.ancestor, .follow = true});
    if (auto made = system.files().make_directories(store.path, above.mode & k_but_set_id); !made)
      return made;
  }
  return system.files().make_directories(path, 0755);
}

} // namespace

Result<void> pack_path(sys::System& system, const PathStagingRequest& request, const PackedPath& packed,
                       const plan::Say& say) {
  // For nobody else than the directory: the directories above it may keep out others than those above the store.
  const auto access = stage_access(system, request.path, request.how.as);
  if (!access)
    return fail(access.error());
  if (auto made = make_store(system, request.store); !made)
    return made;
  if (is_few_large(packed.survey)) {
    if (auto noted = write_list(system, request, packed, *access, say); !noted)
      return noted;
    remove_older(system, request, packed);
    return {};
  }
  ImageRequest image;
  image.tree = {.path = request.path, .root = system.files().root()};
  image.record.files = packed.survey.files;
  image.record.bytes = packed.survey.bytes;
  image.most = access->mode & 0444U;
  image.gid = access->gid;
  const auto store = system.entry({.path = request.store, .follow = true}).resolved;
  image.file = image_path(join_path(store, k_unfinished + random_letters(12)));
  const ScratchTree guard(system, image.file, say); // until it has its name
  auto note = make_image(system, image, say);
  if (!note)
    return fail(note.error());
  if (auto unchanged = check_unchanged(system, request, packed.survey, say); !unchanged)
    return unchanged;
  if (auto published = publish_image(system, image.file, *note, packed.image); !published)
    return published;
  remove_older(system, request, packed);
  return {};
}

Result<PathStaging> plan_path_staging(sys::System& system, const PathStagingRequest& request,
                                      const PackedPath& packed) {
  PathStaging staging;
  staging.survey = packed.survey;
  const auto uid = static_cast<unsigned>(system.identity().uid);
  const auto place = staged_directory(request.at, uid, parent_path(request.path), base_name(request.path));
  staging.directory = system.entry({.path = place, .list = true, .links = sys::Links::trusted, .guarded = true});
  if (auto usable =
          check_stage(system, staging.directory, request.at, !request.is_own, "stage " + shell_quote(request.path));
      !usable)
    return fail(usable.error());
  if (staging.directory.shared)
    return fail(ErrorCode::config, request.at + " lies on shared storage: a copy there is no nearer",
                "set `stage.at` in sharefs.yaml to a directory on this host's own disk");
  const auto access = stage_access(system, request.path, request.how.as);
  if (!access)
    return fail(access.error());
  staging.access = *access;
  const auto store = probe_store(system, request);
  staging.image = probe_image(system, packed.image, 0, request.how.as);
  staging.why_files = staging.image.exists()        ? why_no_mount(system, staging.image, store.uid)
                      : is_few_large(packed.survey) ? "they are few and large"
                                                    : why_no_images(system);
  if (staging.why_files.empty() && !staging.image.exists())
    staging.why_files = "there is no image of it in " + request.store;
  if (!staging.why_files.empty())
    staging.files = read_list(system, request, packed.image, store.uid);
  const bool by_image = staging.why_files.empty();
  const auto& hash = by_image ? staging.image.note->sha256 : packed.survey.fingerprint;
  staging.copy = join_path(staging.directory.resolved, hash.substr(0, k_hash_digits));
  StagedCopy there;
  for (auto& copy : probe_copies(system, {staging.directory}))
    if (copy.tree.path == staging.copy)
      there = std::move(copy);
  auto mark = mark_of(request, packed, staging);
  if (!mark.reader) // what this host remembers has answered root, whom the server may refuse later on
    mark.reader = there.what().reader;
  const auto text = format_mark(mark);
  auto before = there.what();
  before.reader = mark.reader;
  staging.copies = before != mark || (by_image && there.image.kind != sys::EntryKind::file);
  const auto group = base_name(request.path);
  if (staging.copies) {
    const auto begun = std::min(there.part.allocated, staging.image.file.size); // by a command that was cut off
    const auto wanted = by_image ? tree::Measured{.bytes = staging.image.file.size - begun}
                                 : tree::Measured{.files = packed.survey.files, .bytes = packed.survey.bytes};
    if (auto room = check_room(system, staging.directory, wanted,
                               "free some (`sharefs stage --list`, `--drop`), or set `stage.at` to a larger disk");
        !room)
      return fail(room.error());
    if (!by_image)
      staging.plan.notes.push_back("file by file: " + staging.why_files);
    staging.plan.notes.insert(staging.plan.notes.begin(),
                              by_image ? fmt::format("first {} ({}) is copied to {}", staging.image.path,
                                                     format_bytes(staging.image.file.size), image_path(staging.copy))
                                       : fmt::format("first {} ({}) of {} {} copied to {}",
                                                     count_of(packed.survey.files, "file"),
                                                     format_bytes(packed.survey.bytes), request.path,
                                                     packed.survey.files == 1 ? "is" : "are", staging.copy));
  }
  if (there.is_dead())
    staging.plan.add(group, "its squashfuse has ended", unmount_copy(there));
  if (by_image && !there.is_mounted()) {
    if (!there.tree.exists() && !there.is_dead())
      staging.plan.add_bookkeeping(group, "it is mounted there", plan::make_directory(staging.copy, 0755, {}, true));
    staging.plan.add(group, "its image, read-only", mount_of_image(staging.copy, mark, uid));
  }
  if (there.mark.content != text)
    staging.plan.add_bookkeeping(
        group, "it is whole",
        plan::File{complete_mark(staging.copy),
                   there.mark.kind == sys::EntryKind::file ? std::optional(there.mark.content) : std::nullopt, text});
  const auto mounts = system.mounts();
  if (request.binds && mounts && !mounts->is_bind(request.path, staging.copy)) {
    const auto bind = bind_of(staging.copy, mark);
    if (auto older = older_bind(system, bind, *mounts))
      staging.plan.add(group, k_why_older, std::move(*older));
    staging.plan.add(group, "whoever asks for it on the share reads the copy", bind);
  }
  for (const auto& name : staging.directory.names)
    if (name.ends_with(complete_mark("")) && staging.copies && name != complete_mark(base_name(staging.copy)))
      staging.plan.notes.push_back(fmt::format("an older copy stays, for those who read it; `sharefs stage --drop {}` "
                                               "takes it away",
                                               name.substr(0, name.find('.'))));
  staging.nothing = staging.copy + " is there";
  if (request.bound)
    staging.nothing += fmt::format(", over {}: what is changed on the share is seen after `sharefs stage --drop`",
                                   shell_quote(request.path));
  return staging;
}

namespace {

/// Directories are root's until all in them has come: nobody else can replace anything.
Result<void> open_directories(sys::System& system, const PathStaging& staging) {
  std::vector<const tree::Listed*> listed;
  sys::EntryRequest request;
  for (const auto& one : staging.files->entries)
    if (S_ISDIR(one.mode)) {
      listed.push_back(&one);
      request.queries.push_back({.path = join_path(staging.copy, one.path), .links = sys::Links::none});
    }
  const auto entries = listed.empty() ? std::vector<sys::Entry>{} : system.entries(request);
  for (auto at = entries.size(); at-- > 0;) { // those in others first
    const auto& entry = entries[at];
    const plan::Access before{entry.uid, entry.gid, entry.mode, ""};
    const bool gives = system.identity().uid == 0;
    const plan::Access after{gives ? staging.files->uid : entry.uid, gives ? staging.files->gid : entry.gid,
                             listed[at]->mode & 03777U, ""};
    const plan::SetAccess step{
        .path = entry.path, .before = before, .after = after, .identity = {entry.device, entry.inode}};
    if (auto done = plan::apply_action(step, system); !done)
      return fail(done.error());
  }
  return {};
}

/// Each file as it lies, from other nodes where they have it.
Result<void> fetch_files(sys::System& system, const PathStagingRequest& request, const PathStaging& staging,
                         const plan::Say& say) {
  const auto& listing = *staging.files;
  const auto progress = say.progress("copying " + request.path);
  tree::FetchReport sum;
  tree::Progress done;               // of the files before
  std::set<std::string> passed_over; // upstreams that are not asked again
  const auto begin = sys::Clock::now();
  const auto& root = system.files().root();
  for (const auto& one : listing.entries)
    done.total_bytes += one.bytes;
  for (const auto& one : listing.entries) {
    const auto to = join_path(staging.copy, one.path);
    if (S_ISDIR(one.mode)) {
      if (auto made = system.files().make_directories(to, 0700); !made)
        return made;
      continue;
    }
    if (S_ISLNK(one.mode)) {
      if (auto made = plan::apply_action(plan::make_link(to, one.target), system); !made)
        return fail(made.error());
      continue;
    }
    auto upstreams = one.bytes < k_handed_on ? std::vector<tree::Upstream>{} : request.how.upstreams_for(to, one.bytes);
    std::erase_if(upstreams, [&](const tree::Upstream& upstream) { return passed_over.contains(upstream.name); });
    const auto fetched = tree::fetch_listed(
        {.path = join_path(request.path, one.path), .root = root}, {.path = to, .root = root, .guarded = true}, listing,
        one, request.how.options(),
        [&](const tree::Progress& now) {
          auto all = now;
          all.bytes += done.bytes;
          all.total_bytes = done.total_bytes;
          all.took = std::chrono::duration_cast<std::chrono::milliseconds>(sys::Clock::now() - begin);
          if (progress)
            progress(all);
        },
        upstreams);
    if (!fetched)
      return fail(fetched.error());
    for (const auto& upstream : upstreams) {
      if (upstream.name == fetched->by)
        break;
      passed_over.insert(upstream.name);
    }
    sum.bytes += fetched->bytes;
    sum.kept += fetched->kept;
    if (!upstreams.empty())
      sum.by = fetched->by;
    if (sum.passed_over.empty())
      sum.passed_over = fetched->passed_over;
    done.bytes += one.bytes;
  }
  if (auto opened = open_directories(system, staging); !opened)
    return opened;
  say.message(text_of(staging.copy, sum));
  if (request.how.fetched)
    request.how.fetched(sum);
  return {};
}

/// As files of the directory alone, which may change meanwhile.
Result<void> copy_files(sys::System& system, const PathStagingRequest& request, const PathStaging& staging,
                        const plan::Say& say) {
  auto copied = copy_tree(system, request.how, request.path, staging.copy,
                          {.files = staging.survey.files, .bytes = staging.survey.bytes}, say);
  return copied ? check_unchanged(system, request, staging.survey, say) : copied;
}

/// A copy of a directory without a mark: its command was killed, or `undo` has left it, or it is being made.
bool is_cut_off(const StagedCopy& copy) {
  const auto name = base_name(copy.tree.path);
  return copy.mark.kind == sys::EntryKind::missing && is_hash(name, k_hash_digits);
}

/// Copies of what the directory holds no more, which nobody will go on with.
Result<void> remove_cut_off(sys::System& system, const PathStaging& staging) {
  std::vector<StagedPath> left;
  const auto directory =
      system.entry({.path = staging.directory.path, .list = true, .links = sys::Links::trusted, .guarded = true});
  for (auto& copy : probe_copies(system, {directory}))
    if (is_cut_off(copy) && base_name(copy.tree.path) != base_name(staging.copy))
      left.push_back({.path = {}, .copy = std::move(copy)});
  for (const auto& step : plan_drop(left).steps)
    if (auto done = plan::apply_action(step.action, system); !done)
      return fail(done.error());
  return {};
}

} // namespace

Result<std::optional<plan::HostLock>> copy_path(sys::System& system, const PathStagingRequest& request,
                                                const PathStaging& staging, const plan::Say& say) {
  if (!staging.copies)
    return std::nullopt;
  auto alone = request.how.lock();
  if (!alone)
    return fail(alone.error());
  auto done = make_copies_directory(system, staging.directory.path, staging.access);
  if (done)
    done = remove_cut_off(system, staging);
  if (done)
    done = staging.why_files.empty() ? copy_image(system, request.how, staging.image, staging.copy, say)
           : staging.files           ? fetch_files(system, request, staging, say)
                                     : copy_files(system, request, staging, say);
  return done ? Result<std::optional<plan::HostLock>>(std::move(*alone)) : fail(done.error());
}

std::vector<StagedPath> list_staged_paths(sys::System& system, const std::set<std::string>& directories) {
  const auto uid = static_cast<unsigned>(system.identity().uid);
  std::vector<StagedPath> found;
  const auto mounts = system.mounts();
  for (auto& copy : find_copies(system, directories, uid == 0 ? std::set<unsigned>{0} : std::set<unsigned>{0, uid})) {
    const auto what = copy.what();
    StagedPath one{.path = what.source, .copy = std::move(copy)};
    const auto& path = one.copy.tree.path;
    if (what.source.empty()) {
      if (!is_cut_off(one.copy))
        continue;
      one.path = staged_source(parent_path(path));
    } else if (mounts) {
      one.is_bound = mounts->is_bind(one.path, path);
      if (!one.is_bound)
        one.older = older_bind(system, bind_of(path, what), *mounts);
      if (one.older && !one.older->source.starts_with(image_path(path)))
        one.older.reset(); // that of another copy
    }
    found.push_back(std::move(one));
  }
  return found;
}

plan::Plan plan_drop(const std::vector<StagedPath>& staged) {
  plan::Plan plan;
  for (const auto& one : staged) {
    const auto& copy = one.copy;
    const auto& group = copy.tree.path;
    const auto what = copy.what();
    if (one.is_bound || one.older)
      plan.add(group, "the path on the share is the share's again",
               one.older.value_or(unmount_of(bind_of(group, what))));
    const bool has_mount = copy.is_mounted() || copy.is_dead();
    if (has_mount)
      plan.add(group, "its image", unmount_copy(copy));
    if (copy.mark.kind == sys::EntryKind::file)
      plan.add_bookkeeping(group, "it is not whole from here on", plan::remove_file(copy.mark.path, copy.mark.content));
    if (has_mount)
      plan.add_bookkeeping(group, "", plan::remove_directory(group));
    else if (copy.tree.kind == sys::EntryKind::directory)
      plan.add(group, "", removal_of(copy.tree));
    for (const auto* file : {&copy.image, &copy.part})
      if (file->kind == sys::EntryKind::file)
        plan.add(group, "", removal_of(*file));
  }
  return plan;
}

} // namespace sharefs::conda
