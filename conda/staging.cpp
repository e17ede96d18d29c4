#include "conda/staging.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "conda/change.hpp"
#include "conda/homes.hpp"
#include "conda/running.hpp"
#include "plan/apply.hpp"

#include <algorithm>
#include <cerrno>
#include <fmt/format.h>
#include <tuple>
#include <utility>

namespace sharefs::conda {

namespace {

tree::Place place(sys::System& system, const std::string& path) {
  return {.path = path, .root = system.files().root(), .guarded = true};
}

/// Returns the record, or an empty one if there is none. Fails if the disk or the server does: a copy that is marked by
/// an empty record would not be used later.
Result<Generation> record_of(const Staging& staging) {
  const auto* one = staging.environment.find(staging.environment.current);
  if (one == nullptr || one->record)
    return one == nullptr ? Generation{} : *one->record;
  return check_read(one->record_entry).map([] { return Generation{}; });
}

/// True if a user can mount an image: squashfuse, fusermount and the device exist.
bool has_squashfuse(sys::System& system) {
  constexpr std::uint32_t k_all_read_and_write = 0006;
  sys::EntryRequest request{.queries = {{.path = "/dev/fuse"}}};
  const auto directories = split(sys::k_system_path, ':');
  for (const auto* program : {"squashfuse_ll", "squashfuse", "fusermount3", "fusermount"})
    for (const auto& directory : directories)
      request.queries.push_back({.path = join_path(directory, program), .follow = true});
  const auto entries = system.entries(request);
  const auto has = [&](std::size_t first) { // true if one of two programs is installed
    const auto begin = entries.begin() + 1 + static_cast<std::ptrdiff_t>(first * directories.size());
    return std::any_of(begin, begin + static_cast<std::ptrdiff_t>(2 * directories.size()),
                       [](const sys::Entry& entry) { return entry.exists(); });
  };
  return (entries.front().mode & k_all_read_and_write) == k_all_read_and_write && has(0) && has(2);
}

/// Returns the kernel modules that root needs to mount an image, and that this kernel neither has nor can load.
std::vector<std::string> missing_modules(sys::System& system) {
  constexpr std::size_t k_longest = 16U << 10U;
  const auto has_word = [](const std::string& text, const std::string& word) {
    return std::ranges::any_of(
        split_lines(text), [&](const std::string& line) { return std::ranges::count(split_words(line), word) > 0; });
  };
  const auto lists = system.entries({.queries = {{.path = "/proc/filesystems", .read_bytes = k_longest},
                                                 {.path = "/proc/devices", .read_bytes = k_longest}}});
  std::vector<std::string> missing;
  for (const auto& [list, module] : {std::pair{&lists[0], "squashfs"}, std::pair{&lists[1], "loop"}}) {
    if (has_word(list->content, module))
      continue;
    sys::Command command; // tests whether the kernel could load it on demand
    command.argv = {"modprobe", "--dry-run", "--quiet", module};
    if (const auto done = system.run(command); !done || !done->ok())
      missing.emplace_back(module);
  }
  return missing;
}

} // namespace

std::string text_of(const std::string& to, const tree::FetchReport& fetched) {
  auto text =
      fmt::format("{}: {} copied, {} there already", to, format_bytes(fetched.bytes), format_bytes(fetched.kept));
  if (!fetched.by.empty())
    text += ", from " + fetched.by;
  return fetched.passed_over.empty() ? text : fmt::format("{} ({})", text, fetched.passed_over);
}

std::string why_no_images(sys::System& system) {
  if (system.identity().uid != 0)
    return has_squashfuse(system) ? ""
                                  : "only root can mount an image, or a user where squashfuse and fuse3 are installed";
  const auto missing = missing_modules(system);
  return missing.empty()
             ? ""
             : fmt::format("this kernel has no {}, which mounting an image needs", join(missing, " and no "));
}

std::string why_no_mount(sys::System& system, const Image& image, std::uint32_t store_owner) {
  if (image.is_trusted(store_owner))
    return why_no_images(system);
  return fmt::format("{} mounts no image that others than root or uid {}, whose the store is, could have written",
                     system.identity().uid == 0 ? "root" : "squashfuse", store_owner);
}

namespace {

/// Returns the reason why files are copied, although an image would be 20 times as fast; empty if the image is copied.
std::string why_files(sys::System& system, const Staging& staging, bool by_image, std::uint32_t store_owner) {
  if (!by_image)
    return "`conda.image` is off in sharefs.yaml";
  const auto& image = staging.image;
  if (image.exists())
    return why_no_mount(system, image, store_owner);
  if (image.note_file.exists() && image.note_file.error_number != 0)
    return "its image cannot be used: " + image.note_file.error().message;
  return fmt::format("there is no image of it{} (`sharefs conda image {}` makes one)",
                     image.is_damaged() ? ": what has its name is damaged, or of another generation" : "",
                     shell_quote(staging.environment.name));
}

/// False if an image lies here that is not mounted and cannot be mounted: the host may have another kernel than when
/// the image was copied.
bool can_mount_again(sys::System& system, const Staging& staging) {
  const auto* there = staging.copies.find(staging.wanted.copy);
  return there == nullptr || there->image.kind != sys::EntryKind::file || there->is_mounted() ||
         why_no_images(system).empty();
}

/// Returns the size that still has to be written.
tree::Measured measure_rest(sys::System& system, const Staging& staging) {
  const auto* begun = staging.copies.find(staging.wanted.copy);
  if (staging.made.by_image) {
    const auto size = staging.image.file.size;
    return {.bytes = size - (begun == nullptr ? 0 : std::min(begun->part.allocated, size))};
  }
  auto rest = staging.size;
  if (begun != nullptr && begun->tree.exists())
    if (const auto there = tree::measure(place(system, staging.path()), {})) {
      rest.files -= std::min(rest.files, there->files);
      rest.bytes -= std::min(rest.bytes, there->bytes);
    }
  return rest;
}

/// Returns the reason why the image cannot be mounted from this share; empty if it can.
std::string why_not_from_share(sys::System& system, const std::string& source) {
  const auto table = system.mounts();
  const auto* share = table ? table->owner_of(source) : nullptr;
  const auto options = share == nullptr ? std::vector<std::string>{} : split(share->super_options, ',');
  if (share != nullptr && share->fs_type == "nfs4" && std::ranges::count(options, "hard") > 0)
    return {};
  return "`conda.image_from_share` wants the store on a mount of NFS 4 with `hard`: by any other one programs would "
         "read garbage or fail when its server is away";
}

Result<void> check_programs_start(sys::System& system, const Staging& staging) {
  const auto table = system.mounts();
  const auto* disk = table ? table->owner_of(staging.copies.directory.ancestor) : nullptr;
  if (disk == nullptr || std::ranges::count(split(disk->options, ','), "noexec") == 0)
    return {};
  return fail(ErrorCode::config,
              fmt::format("{} is mounted noexec: no program of a copy would start there", disk->target),
              "set `conda.stage` in sharefs.yaml to another disk; an image could be staged there");
}

sys::Entry read_as_reader(sys::System& system, const StagingRequest& request, sys::EntryQuery query) {
  return system.entries({.queries = {std::move(query)}, .as = request.how.copying.reader}).front();
}

/// Finds the generation to stage. Returns its path without links; if copies are only removed, it may be missing, and
/// only the store and the name are certain.
Result<GenerationPath> find_generation(sys::System& system, const StagingRequest& request, Staging& staging,
                                       const plan::Say& say) {
  auto environment = request.removes
                         ? probe_environment(system, request.store, request.name, request.how.copying.reader)
                         : find_shared(system, request.store, request.name, request.how.copying.reader);
  if (!environment && !request.removes)
    return fail(environment.error());
  if (!environment)
    say.message(environment.error().message + ": who runs it is known by this host's processes only");
  staging.environment =
      environment ? std::move(*environment) : SharedEnvironment{.store = request.store, .name = request.name};
  const auto number = staging.environment.current;
  const auto source = read_as_reader(
      system, request, {.path = number == 0 ? request.store : staging.environment.path(number), .follow = true});
  const auto generation = in_generation(source.resolved);
  if (!generation && !request.removes)
    return fail(source.error());
  staging.source = source.resolved;
  return generation.value_or(GenerationPath{.store = source.resolved, .name = request.name, .number = 0, .rest = ""});
}

/// Returns, for a user, the path of root's copy, which all users of the environment may use; "" if there is none.
std::string staged_by_root(sys::System& system, const StagingRequest& request, const GenerationPath& generation) {
  const auto copy = system.identity().uid == 0 ? std::nullopt : find_staged(system, request.stage, 0, generation);
  return copy && !copy->is_on_share() ? copy->tree.path : "";
}

} // namespace

Result<void> check_room(sys::System& system, const sys::Entry& directory, const tree::Measured& wanted,
                        const std::string& hint) {
  constexpr std::uint64_t k_spare_bytes = 256U << 20U, k_spare_files = 1000;
  const auto entry = system.entry({.path = directory.ancestor, .follow = true, .space = true});
  if (!entry.space)
    return {};
  const auto& space = *entry.space;
  std::string lacks;
  if (space.free_bytes < wanted.bytes + k_spare_bytes)
    lacks = fmt::format("{}; {} are to be written, and {} stay free for others", format_bytes(space.free_bytes),
                        format_bytes(wanted.bytes), format_bytes(k_spare_bytes));
  else if (space.files != 0 && space.free_files < wanted.files + k_spare_files)
    lacks = fmt::format("{} (inodes); {} are to be written, and {} inodes stay free for others",
                        count_of(space.free_files, "file"), count_of(wanted.files, "file"), k_spare_files);
  return lacks.empty() ? Result<void>{}
                       : fail(ErrorCode::failed, fmt::format("{} has room for {}", entry.mount, lacks), hint);
}

Result<void> check_stage(sys::System& system, const sys::Entry& entry, const std::string& stage, bool makes,
                         const std::string& command, const std::string& key) {
  const auto quoted = shell_quote(stage);
  if (entry.kind == sys::EntryKind::unknown) {
    auto error = entry.error();
    if (error.code == ErrorCode::permission)
      error.hint = fmt::format("only root may have made it: see what lies there, then `sudo mv {0} {0}.old`", quoted);
    return fail(std::move(error));
  }
  if (entry.shared)
    return fail(ErrorCode::config, stage + " lies on shared storage: a copy there is no nearer",
                fmt::format("set `{}` in sharefs.yaml to a directory on this host's own disk", key));
  const auto uid = system.identity().uid;
  if (uid == 0 || !makes || entry.exists())
    return {};
  const auto above = system.entry({.path = entry.ancestor, .follow = true, .access = true});
  const bool makes_stage = !is_under(entry.ancestor, stage);
  if (above.writable && (!makes_stage || above.uid == uid))
    return {};
  return fail(ErrorCode::permission,
              fmt::format("{} {}", above.path, above.writable ? "is for all users" : "cannot be written"),
              fmt::format("root makes copies for all users: `sudo sharefs {}`; or lets each make an own one: "
                          "`sudo install -d -m 1777 {}`",
                          command, quoted));
}

std::string only_of_root(const std::string& copy, const std::string& command) {
  return fmt::format("{} is root's, for all users: `sudo sharefs {}` removes it", copy, command);
}

std::string Staging::path() const {
  return join_path(copies.directory.path, wanted.copy);
}

Result<void> plan_copy(sys::System& system, Staging& staging, const std::string& hint) {
  staging.made = plan_stage(staging.copies, staging.wanted);
  if (!staging.made.copies)
    return {};
  TRY(check_room(system, staging.copies.directory, measure_rest(system, staging), hint));
  auto& notes = staging.made.plan.notes;
  const auto left = fmt::format("`sharefs undo` leaves that copy, unused, to `sharefs {}`", staging.drops);
  if (staging.made.by_image) {
    notes.insert(notes.begin(), fmt::format("first {} ({}) is copied to {}; {}", staging.image.path,
                                            format_bytes(staging.image.file.size), image_path(staging.path()), left));
    return {};
  }
  if (staging.why_files.empty())
    staging.why_files = "a command works with the files that are there";
  const auto& [files, bytes] = std::tie(staging.size.files, staging.size.bytes);
  const auto what =
      files == 0 ? std::string("all of it is")
                 : fmt::format("{} ({}) {}", count_of(files, "file"), format_bytes(bytes), files == 1 ? "is" : "are");
  notes.insert(notes.begin(), {fmt::format("first {} copied from {} to {}, and compared; {}", what, staging.source,
                                           staging.path(), left),
                               "file by file: " + staging.why_files});
  return {};
}

namespace {

/// Makes the directory of copies, in which nobody else can replace them, and sets who may enter it. It stays, because
/// later copies lie there, too.
Result<void> make_copies_directory(sys::System& system, const std::string& path, const StageAccess& access) {
  TRY(system.files().make_directories(path, 0755));
  const auto entry = system.entry({.path = path, .links = sys::Links::trusted, .guarded = true});
  if (entry.kind != sys::EntryKind::directory)
    return fail(entry.error());
  const auto admitted = admit(entry, access);
  return admitted ? plan::apply_action(*admitted, system).map([](plan::Outcome) {}) : Result<void>{};
}

/// Copies the source file by file, and reports the numbers.
Result<void> copy_tree(sys::System& system, const CopySettings& how, const Staging& staging, const plan::Say& say) {
  auto options = how.copying;
  options.remove_others = true;
  options.total_files = staging.size.files;
  options.total_bytes = staging.size.bytes;
  const auto to = staging.path();
  TRY_ASSIGN(const auto copied, tree::copy({.path = staging.source, .root = system.files().root()}, place(system, to),
                                           options, say.progress("copying " + staging.source)));
  say.message(fmt::format("{}: {} copied ({}), {} there already", to, count_of(copied.files, "file"),
                          format_bytes(copied.bytes), copied.kept));
  return {};
}

/// Copies the image to this host, to the path of the copy's image.
Result<void> copy_image(sys::System& system, const CopySettings& how, const Staging& staging, const plan::Say& say) {
  const auto to = image_path(staging.path());
  const auto& image = staging.image;
  const auto& note = *image.note;
  auto options = how.copying;
  if (options.reader && image.file.uid != 0 &&
      image.file.uid != options.reader->uid) // it may be readable for its owner only, if files in it are
    if (auto owner = system.user(std::to_string(image.file.uid)))
      options.reader = std::move(*owner);
  TRY_ASSIGN(const auto fetched, tree::fetch({.path = image.path, .root = system.files().root()}, place(system, to),
                                             {note.sha256, note.bytes}, options, say.progress("copying " + image.path),
                                             how.upstreams(to, note.bytes)));
  say.message(text_of(to, fetched));
  how.fetched(fetched);
  return {};
}

} // namespace

Result<plan::HostLock> begin_copy(sys::System& system, const CopySettings& how, const Staging& staging) {
  TRY_ASSIGN(auto alone, how.lock());
  TRY(make_copies_directory(system, staging.copies.directory.path, staging.wanted.access));
  return alone;
}

Result<void> copy_source(sys::System& system, const CopySettings& how, const Staging& staging, const plan::Say& say) {
  return staging.made.by_image ? copy_image(system, how, staging, say) : copy_tree(system, how, staging, say);
}

Result<Staging> plan_staging(sys::System& system, const StagingRequest& request, const plan::Say& say) {
  Staging staging;
  TRY_ASSIGN(const auto generation, find_generation(system, request, staging, say));
  const auto& store = generation.store;
  const auto of_root = staged_by_root(system, request, generation);
  if (!of_root.empty() && !request.removes && !request.from_share) {
    staging.nothing = of_root + " is there";
    return staging;
  }
  const auto uid = static_cast<unsigned>(system.identity().uid);
  staging.copies = probe_staged(system, request.stage, uid, join_path(store, request.name));
  staging.drops = fmt::format("conda stage {} --remove", request.name);
  TRY(check_stage(system, staging.copies.directory, request.stage, !request.removes, "conda stage " + request.name,
                  "conda.stage"));
  auto& wanted = staging.wanted;
  wanted.name = request.name;
  wanted.uid = uid;
  wanted.busy = busy_copies(system, staging.environment, staging.copies);
  if (!request.removes) {
    TRY_ASSIGN(const auto record, record_of(staging));
    const auto owner = read_as_reader(system, request, {.path = store, .follow = true}).uid;
    TRY_ASSIGN(wanted.access, stage_access(system, staging.source, request.how.copying.reader));
    wanted.copy = generation_name(staging.environment.current);
    wanted.what = {.source = staging.source, .state = std::to_string(record.created)};
    wanted.mounts_images = can_mount_again(system, staging);
    staging.size = {.files = record.files, .bytes = record.bytes};
    staging.image = probe_image(system, staging.source, record.created, request.how.copying.reader);
    if (request.by_image) // one failure of the server must not make a copy of files, which stays
      TRY(staging.image.check());
    staging.why_files = why_files(system, staging, request.by_image, owner);
    if (request.from_share) {
      const auto is_copy = [](const StagedCopy& copy) {
        return copy.mark.kind == sys::EntryKind::file && !copy.is_on_share();
      };
      if (staging.why_files.empty())
        staging.why_files = why_not_from_share(system, staging.source);
      if (std::ranges::any_of(staging.copies.copies, is_copy))
        return staging;
      staging.nothing = staging.why_files;
      if (!staging.nothing.empty())
        return staging;
      wanted.what.share_owner = owner;
    }
    if (staging.why_files.empty())
      wanted.what.sha256 = staging.image.note->sha256;
  }
  auto planned = plan_copy(system, staging, "free some, or set `conda.stage` in sharefs.yaml to a larger disk");
  if (!planned) {
    planned.error().message += ": commands run from the share";
    return fail(planned.error());
  }
  auto& notes = staging.made.plan.notes;
  staging.nothing = !notes.empty()     ? join(notes, "; ")
                    : !request.removes ? staging.path() + " is there"
                    : of_root.empty()  ? "nothing of it is staged here"
                                       : only_of_root(of_root, staging.drops);
  if (request.from_share && staging.made.by_image)
    notes.push_back(
        fmt::format("{}: its commands read the image on the share; while the server is away they wait in the "
                    "kernel, and SIGKILL does not end them (`sharefs conda stage {}` copies it)",
                    request.name, shell_quote(request.name)));
  if (staging.made.copies && !staging.made.by_image)
    TRY(check_programs_start(system, staging));
  return staging;
}

namespace {

Result<void> copy_generation(sys::System& system, const StagingRequest& request, const Staging& staging,
                             const plan::Say& say) {
  TRY_ASSIGN(const auto alone, begin_copy(system, request.how, staging));
  const auto& access = staging.wanted.access;
  // Users of the copies leave their notes in this directory.
  TRY(make_copies_directory(system, staged_uses(staging.copies.directory.path), {uses_mode(access.mode), access.gid}));
  return staging.made.copies ? copy_source(system, request.how, staging, say) : Result<void>{};
}

} // namespace

Result<void> copy_staged(sys::System& system, const StagingRequest& request, const Staging& staging,
                         const plan::Say& say) {
  if (staging.made.copies || staging.made.by_image) {
    const auto made = copy_generation(system, request, staging, say);
    if (!made && made.error().code == ErrorCode::interrupted)
      return fail(made.error());
    const auto source = read_as_reader(system, request, {.path = staging.source, .fresh = true});
    const bool is_gone = source.kind == sys::EntryKind::missing || source.error_number == ESTALE;
    if (is_gone && (!made || !staging.made.by_image)) // `gc` does not know of the copy, so files of it are missing
      return fail(ErrorCode::conflict, fmt::format("{} was deleted while it was copied", staging.source),
                  "run the command again: it copies the present generation");
    if (!made)
      return fail(made.error());
  }
  // The marks are gone, so no command begins to use these copies any more; those that began before are found here.
  const auto now = probe_environment(system, request.store, request.name, request.how.copying.reader);
  for (const auto& name : busy_copies(system, now ? *now : staging.environment, staging.copies))
    if (staging.made.removed.contains(name))
      return fail(ErrorCode::busy, fmt::format("a command works with the copy {} since", name),
                  "run the command again when it has ended");
  return {};
}

std::vector<std::string> find_unstaged(sys::System& system, const std::string& store,
                                       const std::map<std::string, std::string>& environments,
                                       const std::vector<std::string>& readers) {
  sys::EntryRequest links, records;
  for (const auto& [name, stage] : environments)
    links.queries.push_back({.path = join_path(store, name), .follow = true, .fresh = true});
  const auto seen = read_as_permitted(system, links, readers);
  std::vector<std::pair<std::string, GenerationPath>> present;
  auto entry = seen.entries.begin();
  for (const auto& [name, stage] : environments) {
    const auto& there = *entry++;
    if (const auto generation = in_generation(there.resolved); generation && there.shared) {
      present.emplace_back(name, *generation);
      records.queries.push_back(record_query(*generation));
    }
  }
  records.as = seen.by;
  const auto read = system.entries(records); // one request, so that a server that hangs costs one deadline
  std::vector<std::string> unstaged;
  for (std::size_t i = 0; i < present.size(); ++i) {
    const auto& [name, generation] = present[i];
    if (!find_staged(system, environments.at(name), 0, generation, &read[i]))
      unstaged.push_back(name);
  }
  return unstaged;
}

} // namespace sharefs::conda
