#include "conda/staged.hpp"

#include "base/number.hpp"
#include "base/path.hpp"
#include "base/text.hpp"
#include "conda/noted_processes.hpp"
#include "sys/find_processes.hpp"
#include "sys/fs/sha256.hpp"
#include "sys/mounting/mount_call.hpp"

#include <algorithm>
#include <climits>
#include <fmt/format.h>
#include <set>

namespace sharefs::conda {

namespace {

using sys::EntryKind;

constexpr std::size_t k_longest_mark = 8192;
constexpr std::string_view k_mark_suffix = ".complete";

/// Stands for a `%` of a path. A `%` elsewhere stands for `/`, of which a path has never two in a row.
constexpr std::string_view k_percent = "%%+";

/// Encodes a path as one name, different from that of any other path. If the name is longer than the NAME_MAX bytes of
/// a file system, returns a checksum of the path and the end of the name.
std::string encode_name(std::string_view store) {
  constexpr std::size_t k_kept = 200;
  std::string text;
  for (const char byte : store)
    if (byte == '%')
      text += k_percent;
    else
      text += byte == '/' ? '%' : byte;
  return text.size() <= NAME_MAX ? text : sys::sha256(store).substr(0, 16) + text.substr(text.size() - k_kept);
}

/// Returns the path of an image that fetch() has not finished.
std::string part_of(const std::string& image) {
  return fmt::format("{}/.{}.part", parent_path(image), base_name(image));
}

/// Adds the queries for a copy and for its mark, in this order.
void add_queries(const std::string& copy, sys::EntryRequest& request) {
  request.queries.push_back({.path = copy, .links = sys::Links::trusted, .guarded = true});
  request.queries.push_back(
      {.path = complete_mark(copy), .read_bytes = k_longest_mark, .links = sys::Links::trusted, .guarded = true});
}

/// Returns the name of the copy to which a file belongs: as its mark, its image, an unfinished image, or the copy
/// itself.
std::string copy_name(std::string_view name) {
  if (name.starts_with('.') && name.ends_with(".part"))
    name = name.substr(1, name.size() - 6);
  for (const auto suffix : {k_mark_suffix, std::string_view(".sqfs")})
    if (name.ends_with(suffix))
      name.remove_suffix(suffix.size());
  return std::string(name);
}

} // namespace

std::string staged_directory(const std::string& stage, unsigned uid, const std::string& source) {
  return fmt::format("{}/{}/{}/{}", stage, uid, encode_name(parent_path(source)), base_name(source));
}

std::string staged_source(const std::string& directory) {
  std::string text;
  const auto store = base_name(parent_path(directory));
  for (std::size_t at = 0; at < store.size(); ++at)
    if (store.compare(at, k_percent.size(), k_percent) == 0) {
      text += '%';
      at += k_percent.size() - 1;
    } else {
      text += store[at] == '%' ? '/' : store[at];
    }
  return join_path(text, base_name(directory));
}

std::string staged_uses(const std::string& directory) {
  return join_path(directory, "uses");
}

std::string complete_mark(const std::string& copy) {
  return copy + std::string(k_mark_suffix);
}

bool StagedCopy::is_mounted() const {
  const bool is_image = tree.fs_type == sys::k_image || tree.fs_type.starts_with(sys::k_user_image);
  return tree.kind == EntryKind::directory && tree.mount == tree.resolved && is_image;
}

bool StagedCopy::is_dead() const {
  return tree.kind == EntryKind::unknown && tree.fs_type.starts_with(sys::k_user_image) && tree.mount == tree.path;
}

std::string format_mark(const CopyMark& mark) {
  auto text = fmt::format("{}\n{}\n", mark.source, mark.state);
  if (!mark.sha256.empty())
    text += mark.sha256 + "\n";
  if (mark.share_owner)
    text += fmt::format("{}{}\n", sys::k_image_owner, *mark.share_owner);
  if (mark.reader)
    text += fmt::format("{}{}\n", sys::k_reached_as, *mark.reader);
  return text;
}

CopyMark parse_mark(std::string_view text) {
  const auto lines = split_lines(text);
  if (lines.size() < 2 || !lines[0].starts_with('/'))
    return {};
  CopyMark mark{.source = lines[0], .state = lines[1]};
  const auto number_behind = [](const std::string& line, std::string_view word) {
    return line.starts_with(word) ? parse_number<unsigned>(line.substr(word.size())) : std::nullopt;
  };
  for (std::size_t at = 2; at < lines.size(); ++at)
    if (const auto owner = number_behind(lines[at], sys::k_image_owner))
      mark.share_owner = owner;
    else if (const auto reader = number_behind(lines[at], sys::k_reached_as))
      mark.reader = reader;
    else if (at == 2)
      mark.sha256 = lines[at];
  return mark;
}

CopyMark StagedCopy::what() const {
  return mark.kind == EntryKind::file ? parse_mark(mark.content) : CopyMark{};
}

std::string StagedCopy::name() const {
  return base_name(tree.path);
}

std::string StagedCopy::source() const {
  const auto said = what();
  return said.source.empty() ? staged_source(parent_path(tree.path)) : said.source;
}

bool StagedCopy::is_cut_off() const {
  return mark.kind == EntryKind::missing && is_hash(name(), k_hash_digits);
}

bool StagedCopy::is_whole() const {
  const auto said = what();
  const bool mounted_over = tree.mount == tree.resolved;
  return !said.source.empty() &&
         (said.sha256.empty() ? tree.kind == EntryKind::directory && !mounted_over : is_mounted());
}

bool StagedCopy::is_doubtful() const {
  return image.kind == EntryKind::file && mark.kind == EntryKind::file &&
         std::pair(image.mtime, image.mtime_ns) > std::pair(mark.mtime, mark.mtime_ns);
}

bool StagedCopy::is_on_share() const {
  return what().share_owner.has_value();
}

plan::Mount mount_of_image(const std::string& copy, const CopyMark& mark, unsigned uid) {
  plan::Mount mount{image_path(copy), copy, uid == 0 ? sys::k_image : sys::k_user_image, "ro,nosuid,nodev"};
  if (mark.share_owner) {
    mount.source = image_path(mark.source);
    mount.options += fmt::format(",{}{}", sys::k_image_owner, *mark.share_owner);
  }
  return mount;
}

plan::Mount bind_of(const std::string& copy, const CopyMark& mark) {
  plan::Mount mount{copy, mark.source, sys::k_bind, "ro,nosuid,nodev"};
  if (mark.reader)
    mount.options += fmt::format(",{}{}", sys::k_reached_as, *mark.reader);
  return mount;
}

const StagedCopy* StagedCopies::find(const std::string& name) const {
  const auto found = std::ranges::find(copies, name, &StagedCopy::name);
  return found == copies.end() ? nullptr : &*found;
}

std::vector<StagedCopy> read_copies(sys::System& system, const std::vector<sys::Entry>& directories) {
  constexpr std::size_t k_most = 10'000; // a limit for the loop, although only root or this user can have made them
  sys::EntryRequest request;
  std::vector<StagedCopy> found;
  for (const auto& directory : directories) {
    std::set<std::string> names;
    for (const auto& name : directory.names)
      names.insert(copy_name(name));
    for (const auto& name : names) {
      const auto copy = join_path(directory.resolved, name);
      if (found.size() == k_most)
        break;
      found.emplace_back();
      add_queries(copy, request);
      for (const auto& path : {image_path(copy), part_of(image_path(copy))})
        request.queries.push_back({.path = path, .links = sys::Links::trusted, .guarded = true});
    }
  }
  auto entries = system.entries(request);
  auto next = entries.begin();
  for (auto& copy : found)
    for (auto* entry : {&copy.tree, &copy.mark, &copy.image, &copy.part})
      *entry = std::move(*next++);
  return found;
}

StagedCopies probe_staged(sys::System& system, const std::string& stage, unsigned uid, const std::string& source) {
  StagedCopies found;
  found.directory = system.entry(
      {.path = staged_directory(stage, uid, source), .list = true, .links = sys::Links::trusted, .guarded = true});
  found.copies = read_copies(system, {found.directory});
  std::erase_if(found.copies, [](const StagedCopy& copy) {
    return !generation_number(copy.name()) && !is_hash(copy.name(), k_hash_digits);
  });
  return found;
}

sys::EntryQuery record_query(const GenerationPath& generation) {
  return {.path = generation_path(generation.store, generation.name, generation.number) + ".json",
          .read_bytes = k_largest_record,
          .automount = true};
}

std::optional<StagedCopy> find_staged(sys::System& system, const std::string& stage, unsigned uid,
                                      const GenerationPath& generation, const sys::Entry* record) {
  if (stage.empty())
    return std::nullopt;
  const auto source = generation_path(generation.store, generation.name, generation.number);
  std::vector<unsigned> makers{0};
  if (uid != 0)
    makers.push_back(uid);
  sys::EntryRequest request;
  for (const auto maker : makers)
    add_queries(join_path(staged_directory(stage, maker, join_path(generation.store, generation.name)),
                          generation_name(generation.number)),
                request);
  const auto entries = system.entries(request);
  std::optional<std::int64_t> created;
  for (std::size_t index = 0; index < entries.size(); index += 2) {
    StagedCopy copy{.tree = entries[index], .mark = entries[index + 1]};
    if ((copy.mark.uid != 0 && copy.mark.uid != uid) || copy.what().source != source)
      continue;
    if (!created) {
      const auto read =
          parse_generation(record != nullptr ? record->content : system.entry(record_query(generation)).content);
      created = read ? read->created : 0;
    }
    if (copy.is_whole() && copy.what().state == std::to_string(*created))
      return copy;
  }
  return std::nullopt;
}

Result<StageAccess> stage_access(sys::System& system, const std::string& source, const std::optional<sys::User>& as) {
  if (system.identity().uid != 0)
    return StageAccess{0700, std::nullopt};
  sys::EntryRequest request;
  request.as = as;
  for (auto path = parent_path(source); request.queries.empty() || request.queries.back().path != "/";
       path = parent_path(path))
    request.queries.push_back({.path = path, .fresh = true, .acl = true}); // another host may just have closed it
  constexpr unsigned k_others_search = 0001, k_group_searches = 0010;
  constexpr std::uint32_t k_only_group = 0750, k_all_but_group = 0705;
  StageAccess access;
  std::string useless;
  for (const auto& entry : system.entries(request)) {
    if (entry.kind != EntryKind::directory)
      return fail(entry.error());
    if ((entry.withheld & k_others_search) != 0)
      useless = entry.path + " has an ACL that keeps somebody out, whom a copy that root makes would let in";
    const bool group = (entry.mode & k_group_searches) != 0, others = (entry.mode & k_others_search) != 0;
    if (others && group)
      continue;
    if (!others && !group && entry.uid == 0) // only root gets in, so the other directories do not matter
      return StageAccess{0700, std::nullopt};
    const StageAccess needed{others ? k_all_but_group : k_only_group, entry.gid};
    if ((!others && !group) || (access.gid && access != needed))
      useless = fmt::format("{} (mode {:04o}) keeps out {}: a copy that root makes would let others in, or serve "
                            "root only",
                            entry.path, entry.mode,
                            others  ? "its group, and a directory below keeps out others"
                            : group ? "all but its owner and another group than a directory below"
                                    : "all but its owner");
    access = needed;
  }
  if (useless.empty())
    return access;
  return fail(ErrorCode::permission, useless,
              "run the command as a user who works with the environment: the copy is then for this user only");
}

std::optional<plan::SetAccess> admit(const sys::Entry& directory, const StageAccess& access) {
  const auto gid = access.gid.value_or(directory.gid);
  if (gid == directory.gid && access.mode == directory.mode)
    return std::nullopt;
  // Without a `before`, since the entry has no default ACL, which a new directory inherits. The step notes what it
  // finds, and takes such an ACL away, which could let others in.
  return plan::SetAccess{.path = directory.path,
                         .before = std::nullopt,
                         .after = {directory.uid, gid, access.mode, ""},
                         .identity = {directory.device, directory.inode}};
}

sys::Note staged_use_note(sys::Note note, const std::string& store) {
  note.above = encode_name(store);
  return note;
}

std::set<std::string> busy_copies(sys::System& system, const SharedEnvironment& environment,
                                  const StagedCopies& staged) {
  std::set<std::string> busy;
  NotedProcesses processes(system);
  const auto now = time_of(system, environment);
  for (const auto& use : environment.uses)
    if (processes.is_running(use) == true && processes.keeps_generation(use, now))
      busy.insert(generation_name(use.generation));
  auto notes = system.entry({.path = staged_uses(staged.directory.path), .list = true}).names;
  notes.resize(std::min(notes.size(), k_most_uses)); // any user may have made any number of notes
  for (const auto& name : notes)
    if (const auto use = parse_use(name); use && processes.is_running(*use) == true)
      busy.insert(generation_name(use->generation));
  for (const auto& process : sys::read_processes(system, sys::process_ids(system), {{.path = "exe"}}))
    for (const auto& copy : staged.copies) { // a container may have the directory `conda.stage` at another path
      auto stage = copy.tree.path;
      for (int parts = 4; parts > 0; --parts) // STAGE/UID/STORE/ENV/NNNN, see staged_directory()
        stage = parent_path(stage);
      if (process.entries[0].link_target.find(copy.tree.path.substr(stage.size()) + "/") != std::string::npos)
        busy.insert(copy.name());
    }
  return busy;
}

plan::Unmount unmount_copy(const StagedCopy& copy) {
  const unsigned uid = copy.tree.fs_type == sys::k_image ? 0 : 1; // 1 stands for any user, who mounts by squashfuse
  return plan::unmount_of(mount_of_image(copy.is_dead() ? copy.tree.path : copy.tree.resolved, copy.what(), uid));
}

plan::RemoveTree removal_of(const sys::Entry& entry) {
  return {.path = entry.path, .device = entry.device, .inode = entry.inode};
}

void add_removal(const StagedCopy& copy, const std::string& group, const std::string& why, bool unmark,
                 plan::Plan& plan) {
  const bool has_mount = copy.is_mounted() || copy.is_dead();
  if (has_mount)
    plan.add(group, why, unmount_copy(copy), true);
  if (unmark && copy.mark.kind == EntryKind::file)
    plan.add_bookkeeping(group, "it is not whole from here on", plan::remove_file(copy.mark.path, copy.mark.content),
                         true);
  if (has_mount)
    plan.add_bookkeeping(group, "", plan::remove_directory(copy.tree.path), true);
  else if (copy.tree.kind == EntryKind::directory)
    plan.add(group, "", removal_of(copy.tree));
  for (const auto* file : {&copy.image, &copy.part})
    if (file->kind == EntryKind::file)
      plan.add(group, "", removal_of(*file));
}

namespace {

/// Adds steps that remove entries in the place of a copy that has to be made anew: they are of another kind, or of an
/// earlier generation with this number.
void remove_obstacles(const StagedCopy& there, bool by_image, plan::Plan& plan) {
  if (there.is_mounted())
    plan.add("", there.is_on_share() ? "a copy takes its place" : "it is not of this generation", unmount_copy(there),
             !there.is_on_share());
  else if (by_image && there.tree.kind == EntryKind::directory)
    plan.add("", "its image takes its place", removal_of(there.tree));
  for (const auto* file : {&there.image, &there.part})
    if (!by_image && file->kind == EntryKind::file)
      plan.add("", "a directory takes its place", removal_of(*file));
}

} // namespace

StagePlan plan_stage(const StagedCopies& staged, const StageRequest& request) {
  StagePlan made;
  auto& plan = made.plan;
  const auto unmark = [&](const StagedCopy& copy) {
    if (copy.mark.kind == EntryKind::file)
      plan.add_bookkeeping("", "no command begins with it from here on",
                           plan::remove_file(copy.mark.path, copy.mark.content), true);
  };
  if (!request.copy.empty() && staged.directory.exists())
    if (auto step = admit(staged.directory, request.access))
      plan.add("", "as the directories above it on the share", *std::move(step));
  // The marks of old copies go first; the copies are deleted when the new one is complete.
  plan::Plan deletions;
  for (const auto& copy : staged.copies) {
    if (copy.name() == request.copy || request.keeps_others)
      continue;
    if (request.busy.contains(copy.name())) {
      plan.notes.push_back(copy.tree.path + " stays: a command works with it");
      continue;
    }
    unmark(copy);
    made.removed.insert(copy.name());
    add_removal(copy, request.name, request.copy.empty() ? "its image" : "a later generation is staged", false,
                deletions);
  }
  const auto* there = request.copy.empty() ? nullptr : staged.find(request.copy);
  const auto copy = join_path(staged.directory.resolved, request.copy);
  const auto& wanted = request.what;
  const bool wants_image = !wanted.sha256.empty(), is_busy = request.busy.contains(request.copy);
  const auto said = there == nullptr ? CopyMark{} : there->what();
  const bool is_of = there != nullptr && said.source == wanted.source && said.state == wanted.state;
  const bool is_mounted = there != nullptr && there->is_mounted();
  // An image of the right state lies here, and is mounted or can be.
  const bool has_image = is_of && !said.sha256.empty() && !there->is_on_share() &&
                         there->image.kind == EntryKind::file &&
                         (is_mounted || (request.mounts_images && !there->is_doubtful()));
  // A copy that a command uses stays, even if it is the image on the share and another form is wanted.
  const bool is_enough = is_of && there->is_whole() && !request.is_doubtful &&
                         (!there->is_on_share() || wanted.share_owner || !wants_image || is_busy);
  // Copied files that a command may use are completed as files: no image is mounted over them.
  const bool has_files = is_busy && there != nullptr && !is_mounted && there->tree.kind == EntryKind::directory;
  const bool is_wanted = !request.copy.empty() && !has_image && !is_enough && !(has_files && wanted.share_owner);
  made.copies = is_wanted && !wanted.share_owner;
  made.by_image = is_wanted && wants_image && !has_files;
  if (is_wanted && there != nullptr) {
    unmark(*there);
    remove_obstacles(*there, made.by_image, plan);
  }
  auto mark = wanted;
  if (!made.by_image) {
    mark.sha256.clear();
    mark.share_owner.reset();
  }
  if (there != nullptr && there->is_dead())
    plan.add("", "its squashfuse has ended", unmount_copy(*there));
  if (made.by_image || (has_image && !is_mounted)) {
    if (made.by_image || !there->tree.exists())
      plan.add_bookkeeping(request.name, "it is mounted there", plan::make_directory(copy, 0755, {}, true));
    plan.add(request.name, wanted.share_owner ? "its image on the share, read-only" : "its image, read-only",
             mount_of_image(copy, made.by_image ? mark : said, request.uid));
  }
  const auto mark_path = complete_mark(join_path(staged.directory.path, request.copy));
  if (is_wanted)
    plan.add_bookkeeping(request.name, "it is whole from here on",
                         plan::File{mark_path, std::nullopt, format_mark(mark)});
  else if (there != nullptr && wanted.reader && !said.reader) { // the server has begun to refuse root
    auto known = said;
    known.reader = wanted.reader;
    plan.add_bookkeeping(request.name, "who reads the share for root",
                         plan::File{mark_path, there->mark.content, format_mark(known)});
  }
  plan.add(deletions);
  return made;
}

} // namespace sharefs::conda
