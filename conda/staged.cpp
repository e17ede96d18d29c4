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
constexpr std::string_view k_mark_suffix = ".complete";

std::string encoded(std::string_view store) {
  std::string text;
  for (const char byte : store)
    if (byte == '/' || byte == '%')
      text += byte == '/' ? "%" : "%%";
    else
      text += byte;
  return text;
}

std::string text_of_mark(const std::string& source, std::int64_t created) {
  return fmt::format("{}\n{}\n", source, created);
}

/// Asks for a copy and for its mark, in this order.
void add_queries(const std::string& copy, sys::EntryRequest& request) {
  request.queries.push_back({.path = copy, .links = sys::Links::trusted, .guarded = true});
  request.queries.push_back(
      {.path = complete_mark(copy), .read_bytes = k_longest_mark, .links = sys::Links::trusted, .guarded = true});
}

/// The number in the name of a copy or of its mark.
std::optional<unsigned> copy_number(std::string_view name) {
  if (name.ends_with(k_mark_suffix))
    name.remove_suffix(k_mark_suffix.size());
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

bool StagedCopy::is_whole(const std::string& source, std::int64_t created) const {
  const bool mounted_over = tree.mount == tree.resolved;
  return tree.kind == EntryKind::directory && !mounted_over && mark.kind == EntryKind::file &&
         mark.content == text_of_mark(source, created);
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
    add_queries(join_path(directory, generation_name(number)), request);
  auto entries = system.entries(request);
  auto next = entries.begin();
  for (const auto number : numbers) {
    auto& copy = found.copies.emplace_back();
    copy.number = number;
    copy.tree = std::move(*next++);
    copy.mark = std::move(*next++);
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
  for (const auto maker : makers)
    add_queries(join_path(staged_directory(stage, maker, generation.store, generation.name),
                          generation_name(generation.number)),
                request);
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

StagePlan plan_stage(const StagedCopies& staged, const StageRequest& request) {
  StagePlan made;
  auto& plan = made.plan;
  const auto unmark = [&](const StagedCopy& copy) {
    if (copy.mark.kind == EntryKind::file)
      plan.add_bookkeeping("", "no command begins with it from here on",
                           plan::remove_file(copy.mark.path, copy.mark.content));
  };
  if (request.number != 0 && staged.directory.exists())
    if (auto step = admit(staged.directory, request.access))
      plan.add("", "as the directories above the environment on the share", *std::move(step));
  // The new copy may share the files of an old one, so the old ones are deleted when it is complete.
  std::vector<plan::Step> deletions;
  for (const auto& copy : staged.copies) {
    if (copy.number == request.number)
      continue;
    if (std::ranges::find(request.busy, copy.number) != request.busy.end()) {
      plan.notes.push_back(copy.tree.path + " stays: a command works with it");
      continue;
    }
    unmark(copy);
    made.removed.push_back(copy.number);
    if (copy.tree.kind == EntryKind::directory)
      deletions.push_back(
          {request.name, "",
           plan::RemoveTree{.path = copy.tree.path, .device = copy.tree.device, .inode = copy.tree.inode}});
  }
  const auto* there = request.number == 0 ? nullptr : staged.find(request.number);
  made.copies = request.number != 0 && (there == nullptr || !there->is_whole(request.source, request.created));
  if (made.copies) {
    if (there != nullptr)
      unmark(*there);
    const auto copy = join_path(staged.directory.path, generation_name(request.number));
    plan.add_bookkeeping(request.name, "it is whole: `conda run` uses it from here on",
                         plan::File{complete_mark(copy), std::nullopt, text_of_mark(request.source, request.created)});
  }
  std::ranges::move(deletions, std::back_inserter(plan.steps));
  return made;
}

} // namespace sharefs::conda
