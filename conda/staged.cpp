#include "conda/staged.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "sys/find_processes.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace sharefs::conda {

namespace {

using sys::EntryKind;

constexpr std::size_t k_longest_mark = 8192;
constexpr std::string_view k_unfinished = "new-", k_image_suffix = ".squashfs", k_mark_suffix = ".complete";
constexpr std::size_t k_parts = 4; // of a copy
constexpr const char* k_image_options = "ro,nosuid,nodev";

std::string encoded(std::string_view store) {
  std::string text;
  for (const char byte : store)
    if (byte == '/' || byte == '%')
      text += byte == '/' ? "%" : "%%";
    else
      text += byte;
  return text;
}

std::string directory_mark(const std::string& source, std::int64_t created) {
  return fmt::format("{}\n{}\n", source, created);
}

std::string image_mark(const std::string& source, std::int64_t created) {
  return directory_mark(source, created) + sys::k_image + "\n";
}

/// What a copy may consist of: its entries are asked for in this order.
std::vector<sys::EntryQuery> queries_of(const std::string& copy) {
  std::vector<sys::EntryQuery> queries;
  for (const auto& path : {copy, complete_mark(copy), image_of(copy), unfinished_image_of(copy)})
    queries.push_back({.path = path, .links = sys::Links::trusted, .guarded = true});
  queries[1].read_bytes = k_longest_mark;
  return queries;
}

/// The number in any of the names above.
std::optional<unsigned> copy_number(std::string_view name) {
  if (name.starts_with(k_unfinished) && name.ends_with(k_image_suffix))
    name.remove_prefix(k_unfinished.size());
  for (const auto suffix : {k_image_suffix, k_mark_suffix})
    if (name.ends_with(suffix))
      name.remove_suffix(suffix.size());
  return generation_number(name);
}

bool is_ours(const sys::Entry& entry, unsigned uid) {
  return entry.uid == 0 || entry.uid == uid;
}

} // namespace

std::string staged_directory(const std::string& stage, unsigned uid, const std::string& store,
                             const std::string& name) {
  return fmt::format("{}/{}/{}/{}", stage, uid, encoded(store), name);
}

std::string complete_mark(const std::string& copy) {
  return copy + std::string(k_mark_suffix);
}

std::string image_of(const std::string& copy) {
  return copy + std::string(k_image_suffix);
}

std::string unfinished_image_of(const std::string& copy) {
  return join_path(parent_path(copy), std::string(k_unfinished) + base_name(image_of(copy)));
}

bool StagedCopy::is_whole(const std::string& source, std::int64_t created) const {
  if (tree.kind != EntryKind::directory || mark.kind != EntryKind::file)
    return false;
  return mounted() ? tree.fs_type == sys::k_image && mark.content == image_mark(source, created)
                   : mark.content == directory_mark(source, created);
}

const StagedCopy* StagedCopies::find(unsigned number) const {
  const auto found = std::ranges::find(copies, number, &StagedCopy::number);
  return found == copies.end() ? nullptr : &*found;
}

StagedCopies probe_staged(sys::System& system, const std::string& stage, unsigned uid, const std::string& store,
                          const std::string& name) {
  StagedCopies found;
  const auto directory = staged_directory(stage, uid, store, name);
  found.directory = system.entry({.path = directory, .list = true, .links = sys::Links::trusted, .guarded = true});
  std::set<unsigned> numbers;
  for (const auto& one : found.directory.names)
    if (const auto number = copy_number(one))
      numbers.insert(*number);
  sys::EntryRequest request;
  for (const auto number : numbers)
    for (auto& query : queries_of(join_path(directory, generation_name(number)))) {
      query.list = request.queries.size() % k_parts == 0;
      request.queries.push_back(std::move(query));
    }
  auto entries = system.entries(request);
  auto next = entries.begin();
  for (const auto number : numbers) {
    StagedCopy copy{.number = number};
    for (auto* part : {&copy.tree, &copy.mark, &copy.image, &copy.unfinished})
      *part = std::move(*next++);
    found.copies.push_back(std::move(copy));
  }
  return found;
}

std::optional<std::string> find_staged(sys::System& system, const std::string& stage, unsigned uid,
                                       const GenerationPath& generation) {
  const auto source = generation_path(generation.store, generation.name, generation.number);
  std::vector<unsigned> makers{0};
  if (uid != 0)
    makers.push_back(uid);
  sys::EntryRequest request;
  for (const auto maker : makers) {
    auto queries = queries_of(join_path(staged_directory(stage, maker, generation.store, generation.name),
                                        generation_name(generation.number)));
    queries.resize(2); // an image is of no use where it is not mounted
    std::ranges::move(queries, std::back_inserter(request.queries));
  }
  const auto entries = system.entries(request);
  std::optional<std::int64_t> created; // the share is asked only where there is a copy
  for (std::size_t index = 0; index < entries.size(); index += 2) {
    if (!is_ours(entries[index + 1], uid) || !entries[index + 1].content.starts_with(source + "\n"))
      continue;
    if (!created) {
      const auto record = parse_generation(
          system.entry({.path = source + ".json", .read_bytes = k_largest_record, .automount = true}).content);
      created = record ? record->created : 0;
    }
    if (StagedCopy{.tree = entries[index], .mark = entries[index + 1]}.is_whole(source, *created))
      return entries[index].path;
  }
  return std::nullopt;
}

Result<StageAccess> stage_access(sys::System& system, const std::string& source) {
  if (system.identity().uid != 0)
    return StageAccess{0700, std::nullopt};
  sys::EntryRequest request;
  for (auto path = parent_path(source); request.queries.empty() || request.queries.back().path != "/";
       path = parent_path(path))
    request.queries.push_back({.path = path});
  constexpr unsigned k_others_search = 0001, k_group_searches = 0010;
  StageAccess access;
  std::string useless;
  for (const auto& entry : system.entries(request)) {
    if (entry.kind != EntryKind::directory)
      return fail(entry.error());
    if ((entry.mode & k_others_search) != 0)
      continue;
    const bool group = (entry.mode & k_group_searches) != 0;
    if (!group && entry.uid == 0) // whatever the other directories say
      return StageAccess{0700, std::nullopt};
    if (!group || access.gid.value_or(entry.gid) != entry.gid)
      useless = fmt::format(
          "{} (mode {:04o}) keeps out all but {}: a copy that root makes would let others in, or serve "
          "root only",
          entry.path, entry.mode, group ? "its owner and another group than a directory below" : "its owner");
    access = {0750, entry.gid};
  }
  if (useless.empty())
    return access;
  return fail(ErrorCode::permission, useless,
              "run the command as a user who works with the environment: the copy is then for this user only");
}

std::optional<plan::SetAccess> admit(const sys::Entry& directory, const StageAccess& access) {
  const plan::Access before{directory.uid, directory.gid, directory.mode, ""};
  const plan::Access after{directory.uid, access.gid.value_or(directory.gid), access.mode, ""};
  if (before == after)
    return std::nullopt;
  return plan::SetAccess{
      .path = directory.path, .before = before, .after = after, .identity = {directory.device, directory.inode}};
}

std::vector<unsigned> busy_copies(sys::System& system, const SharedEnvironment& environment,
                                  const StagedCopies& staged) {
  constexpr std::chrono::seconds k_deadline{3};
  std::vector<unsigned> busy;
  for (const auto& use : environment.uses)
    if (runs(system, use) == true && keeps(system, use))
      busy.push_back(use.generation);
  sys::EntryRequest request;
  for (const int pid : sys::process_ids(system, k_deadline))
    request.queries.push_back({.path = fmt::format("/proc/{}/exe", pid)});
  for (const auto& entry : system.entries(request))
    for (const auto& copy : staged.copies)
      if (is_under(entry.link_target, copy.tree.path))
        busy.push_back(copy.number);
  return busy;
}

namespace {

class StagePlanner {
 public:
  StagePlanner(const StagedCopies& staged, const StageRequest& request) : m_staged(staged), m_request(request) {}

  StagePlan make() {
    if (const auto& directory = m_staged.directory; m_request.number != 0 && directory.exists())
      if (auto step = admit(directory, m_request.access))
        m_made.plan.add("", "as the directories above the environment on the share", *std::move(step));
    for (const auto& copy : m_staged.copies)
      if (copy.number != m_request.number)
        remove(copy);
    if (m_request.number != 0)
      stage(m_staged.find(m_request.number));
    // In this order: room is needed for the new one only where the old ones are used for it.
    std::ranges::move(m_later, std::back_inserter(m_made.plan.steps));
    return std::move(m_made);
  }

 private:
  [[nodiscard]] bool busy(const StagedCopy& copy) const {
    return std::ranges::find(m_request.busy, copy.number) != m_request.busy.end();
  }

  /// Now, or (with the name of a group) when the new copy is in use.
  void clear(const StagedCopy& copy, const std::string& group, bool tree, bool image) {
    const auto add = [&](std::string why, plan::Action action) {
      (group.empty() ? m_made.plan.steps : m_later).push_back({group, std::move(why), std::move(action)});
    };
    if (tree && copy.mounted()) {
      plan::Unmount unmount;
      unmount.target = copy.tree.path;
      if (copy.image.exists())
        unmount = {copy.tree.path, false, false, copy.image.path, sys::k_image, k_image_options};
      add("no command works with it", std::move(unmount));
      add("", plan::remove_directory(copy.tree.path));
    } else if (tree && copy.tree.kind == EntryKind::directory) {
      add("", plan::RemoveTree{.path = copy.tree.path, .device = copy.tree.device, .inode = copy.tree.inode});
    }
    std::vector<plan::FileChange> files;
    for (const auto* file : {&copy.image, &copy.unfinished})
      if (file->exists() && (image || file == &copy.unfinished)) {
        files.emplace_back().path = base_name(file->path);
        files.back().removed = true;
      }
    if (!files.empty())
      add("", plan::ChangeFiles{m_staged.directory.path, m_staged.directory.device, m_staged.directory.inode, files});
  }

  void unmark(const StagedCopy& copy) {
    if (copy.mark.kind == EntryKind::file)
      m_made.plan.add_bookkeeping("", "no command begins with it from here on",
                                  plan::remove_file(copy.mark.path, copy.mark.content));
  }

  void remove(const StagedCopy& copy) {
    if (busy(copy)) {
      m_made.plan.notes.push_back(copy.tree.path + " stays: a command works with it");
      return;
    }
    unmark(copy);
    m_made.removed.push_back(copy.number);
    clear(copy, m_request.name, true, true);
  }

  void stage(const StagedCopy* there) {
    if (there != nullptr && there->is_whole(m_request.source, m_request.created))
      return;
    const bool begun = there != nullptr && !there->mounted() && !there->tree.names.empty();
    // What a command still works with is not deleted for another form of the same.
    const bool image = m_request.format == StageFormat::squashfs && !(begun && busy(*there));
    const bool has_image = there != nullptr && there->image.kind == EntryKind::file;
    const auto mark =
        image ? image_mark(m_request.source, m_request.created) : directory_mark(m_request.source, m_request.created);
    const bool mounts_only = image && has_image && !begun && !there->mounted() && there->mark.content == mark;
    if (!image || !has_image)
      m_made.makes = image ? StageFormat::squashfs : StageFormat::directory;
    if (there != nullptr && !mounts_only) {
      unmark(*there);
      clear(*there, "", there->mounted() || (image && begun), !image);
    }
    const auto path = join_path(m_staged.directory.path, generation_name(m_request.number));
    const auto add = [&](std::string why, plan::Action action) {
      m_made.plan.add(m_request.name, std::move(why), std::move(action));
    };
    if (image) {
      add("", plan::make_directory(path, 0755, std::nullopt, true));
      add("the copy, which nobody can change", image_mount(image_of(path), path));
    }
    if (!mounts_only)
      m_made.plan.add_bookkeeping(m_request.name, "it is whole: `conda run` uses it from here on",
                                  plan::File{complete_mark(path), std::nullopt, mark});
  }

  const StagedCopies& m_staged;
  const StageRequest& m_request;
  StagePlan m_made;
  std::vector<plan::Step> m_later;
};

} // namespace

StagePlan plan_stage(const StagedCopies& staged, const StageRequest& request) {
  return StagePlanner(staged, request).make();
}

std::string why_no_images(sys::System& system) {
  if (system.identity().uid != 0)
    return "only root can mount one";
  const auto runs = [&](Argv argv) {
    sys::Command command;
    command.argv = std::move(argv);
    const auto done = system.run(command);
    return done && done->ok();
  };
  if (!runs({"mksquashfs", "-version"}))
    return "`mksquashfs` is not installed (package squashfs-tools)";
  constexpr std::size_t k_longest_list = 65536;
  const auto known = system.entry({.path = "/proc/filesystems", .read_bytes = k_longest_list}).content;
  if (known.find("\tsquashfs\n") == std::string::npos && !runs({"modprobe", "-n", "-q", "squashfs"}))
    return "this kernel has no squashfs";
  if (!system.entry({.path = "/dev/loop-control"}).exists() && !runs({"modprobe", "-n", "-q", "loop"}))
    return "this host has no loop devices";
  return {};
}

sys::Command image_command(const std::string& source, const std::string& image, std::uint64_t files,
                           std::uint64_t bytes) {
  // What it takes on the slowest disk and server that anybody would use; a server that is gone ends it then, too.
  constexpr std::uint64_t k_bytes_per_second = 4U << 20U, k_files_per_second = 50;
  sys::Command command;
  command.argv = {"mksquashfs", source,           image,   "-noappend", "-no-progress",
                  "-no-xattrs", "-exit-on-error", "-comp", "zstd",      "-Xcompression-level",
                  "3"};
  command.deadline =
      std::chrono::minutes(10) + std::chrono::seconds(bytes / k_bytes_per_second + files / k_files_per_second);
  command.ends_with_us = true;
  return command;
}

sys::MountCall image_mount(const std::string& image, const std::string& target) {
  return {image, target, sys::k_image, k_image_options};
}

std::optional<std::string> first_difference(const std::vector<tree::HashedFile>& original,
                                            const std::vector<tree::HashedFile>& image) {
  const auto same = [](const tree::HashedFile& a, const tree::HashedFile& b) {
    return a.path == b.path && a.mode == b.mode && a.size == b.size && a.seconds == b.seconds && a.hash == b.hash;
  };
  const auto [one, other] = std::ranges::mismatch(original, image, same);
  if (one == original.end() && other == image.end())
    return std::nullopt;
  if (one == original.end() || other == image.end())
    return one == original.end() ? other->path : one->path;
  return std::min(one->path, other->path); // sorted: the lesser one is missing on the other side
}

} // namespace sharefs::conda
