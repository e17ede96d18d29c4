#include "conda/environment_store.hpp"

#include "base/json_fields.hpp"
#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "conda/image.hpp"
#include "conda/share.hpp"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <set>

namespace sharefs::conda {

namespace {

/// Normalizes a name as the packaging standard does to compare names: `Foo.Bar` is `foo-bar`.
std::string distribution_name(std::string name) {
  for (char& c : name)
    c = c == '_' || c == '.' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

/// Reads the notes in uses/, and who owns them.
Result<void> read_uses(sys::System& system, const sys::Entry& directory, const std::optional<sys::User>& as,
                       SharedEnvironment& into) {
  std::vector<Use> named;
  sys::EntryRequest request;
  request.as = as;
  for (const auto& name : directory.names)
    if (auto use = parse_use(name)) {
      if (named.size() == k_most_uses) {
        into.unknown_uses = fmt::format("{} holds more than {} notes", directory.path, k_most_uses);
        break;
      }
      request.queries.push_back({.path = join_path(directory.path, name)});
      named.push_back(std::move(*use));
    }
  if (directory.exists() && directory.error_number != 0)
    into.unknown_uses = directory.error().message;
  const auto notes = system.entries(request);
  for (std::size_t index = 0; index < notes.size(); ++index) {
    if (notes[index].kind == sys::EntryKind::unknown)
      return fail(notes[index].error());
    if (notes[index].kind != sys::EntryKind::symlink && notes[index].kind != sys::EntryKind::file)
      continue; // deleted meanwhile, or not made by `conda run`
    named[index].uid = notes[index].uid;
    named[index].noted = notes[index].mtime;
    into.uses.push_back(std::move(named[index]));
  }
  return {};
}

} // namespace

const Original* StoredGeneration::original(std::uint32_t owner) const {
  const bool counts = record && (record_entry.uid == 0 || record_entry.uid == owner);
  return counts && !record->original.path.empty() ? &record->original : nullptr;
}

std::string SharedEnvironment::path() const {
  return join_path(store, name);
}

std::string SharedEnvironment::path(unsigned number) const {
  return generation_path(store, name, number);
}

const StoredGeneration* SharedEnvironment::find(unsigned number) const {
  const auto found = std::ranges::find(generations, number, &StoredGeneration::number);
  return found == generations.end() ? nullptr : &*found;
}

namespace {

/// Moves names from `unfinished` to `doubtful` that may not be copies of sharefs. Where others may write, a name proves
/// nothing: they could have given it to a private directory of a user, which that user would then delete. There a
/// directory has to hold the mark of a copy, or conda-meta.
void find_doubtful(sys::System& system, const std::optional<sys::User>& as, SharedEnvironment& found) {
  if ((found.root.mode & 022U) == 0 || found.unfinished.empty())
    return;
  sys::EntryRequest inside;
  inside.as = as;
  for (const auto& name : found.unfinished)
    for (const auto* one : {k_copy_mark, "conda-meta"})
      inside.queries.push_back({.path = join_path(join_path(found.root.path, name), one), .links = sys::Links::none});
  const auto entries = system.entries(inside);
  std::vector<std::string> ours;
  for (std::size_t i = 0; i < found.unfinished.size(); ++i)
    (entries[2 * i].exists() || entries[2 * i + 1].exists() ? ours : found.doubtful).push_back(found.unfinished[i]);
  found.unfinished = std::move(ours);
}

/// Reads the images of the generations, and keeps in `left_images` only those without a generation.
void read_images(sys::System& system, const std::optional<sys::User>& as, SharedEnvironment& found) {
  std::erase_if(found.left_images, [&](const std::string& name) {
    return !unfinished_generation(name.substr(0, name.find(".sqfs"))) &&
           found.find(used_number(name).value_or(0)) != nullptr;
  });
  sys::EntryRequest request;
  request.as = as;
  std::vector<StoredGeneration*> having;
  for (auto& one : found.generations) {
    const auto path = image_path(found.path(one.number));
    if (!std::ranges::binary_search(found.root.names, base_name(path)))
      continue;
    request.queries.push_back({.path = path});
    request.queries.push_back({.path = image_note_path(found.path(one.number))});
    having.push_back(&one);
  }
  auto entries = system.entries(request);
  for (std::size_t index = 0; index < having.size(); ++index) {
    having[index]->image = std::move(entries[2 * index]);
    having[index]->image_note = std::move(entries[2 * index + 1]);
  }
}

} // namespace

Result<SharedEnvironment> probe_environment(sys::System& system, const std::string& store, const std::string& name,
                                            const std::optional<sys::User>& as) {
  SharedEnvironment found{.store = store, .name = name};
  const auto root = generations_path(store, name);
  // `fresh`, because another host may just have changed the environment or left its notes.
  auto first =
      system.entries({.queries = {{.path = join_path(store, name), .fresh = true},
                                  {.path = root, .follow = true, .list = true, .fresh = true},
                                  {.path = join_path(root, "uses"), .follow = true, .list = true, .fresh = true},
                                  {.path = join_path(root, "lock"), .read_bytes = k_largest_note}},
                      .as = as});
  for (const auto& entry : first)
    if (entry.kind == sys::EntryKind::unknown)
      return fail(entry.error());
  found.entry = std::move(first[0]);
  found.root = std::move(first[1]);
  if (found.entry.kind == sys::EntryKind::symlink)
    found.current = linked_generation(name, found.entry.link_target).value_or(0);
  if (found.root.exists() && found.root.error_number != 0)
    return fail(found.root.error());
  TRY(read_uses(system, first[2], as, found));
  if (first[3].kind == sys::EntryKind::file)
    found.holder = from_json<sys::LeaseHolder>(first[3].content, k_largest_note), found.held = first[3].mtime;

  sys::EntryRequest rest;
  rest.as = as;
  const auto is_record = [](const std::string& one) { return generation_number(one).has_value(); };
  const auto count = static_cast<std::size_t>(std::ranges::count_if(found.root.names, is_record));
  const auto record_bytes = std::min(k_largest_record, k_all_records / std::max<std::size_t>(count, 1));
  found.highest = found.current;
  for (const auto& one : found.root.names) {
    found.highest = std::max(found.highest, used_number(one).value_or(0));
    if (unfinished_generation(one))
      found.unfinished.push_back(one);
    if (is_of_image(one) || is_unfinished_text(one))
      found.left_images.push_back(one);
    const auto number = generation_number(one);
    if (!number)
      continue;
    const auto path = found.path(*number);
    rest.queries.push_back({.path = path});
    rest.queries.push_back({.path = path + ".json", .read_bytes = record_bytes});
    rest.queries.push_back({.path = path + ".pinned", .read_bytes = k_largest_note});
    found.generations.push_back({.number = *number});
  }
  rest.queries.push_back({.path = join_path(root, "verified"), .read_bytes = k_largest_note});
  find_doubtful(system, as, found);
  auto entries = system.entries(rest);
  found.verified = std::move(entries.back().content);
  for (std::size_t index = 0; index < found.generations.size(); ++index) {
    auto& one = found.generations[index];
    one.entry = std::move(entries[3 * index]);
    one.record_entry = std::move(entries[3 * index + 1]);
    if (one.entry.kind == sys::EntryKind::unknown)
      return fail(one.entry.error());
    if (const auto& pin = entries[3 * index + 2]; pin.exists()) // only a regular file has a text
      one.pinned = std::string(trim(to_utf8(pin.content)));
    if (one.record_entry.kind == sys::EntryKind::missing) {
      one.problem = "has no record";
    } else if (one.record_entry.kind != sys::EntryKind::file || one.record_entry.error_number != 0) {
      one.problem = "cannot be read: " + one.record_entry.error().message;
    } else if (one.record_entry.content.size() < one.record_entry.size) {
      one.problem = fmt::format("is not read: it is larger than {}", format_bytes(record_bytes));
    } else if (auto record = parse_generation(one.record_entry.content)) {
      one.record = std::move(*record);
      one.record->number = one.number;
    } else {
      one.problem = record.error().message;
    }
    if (one.record && one.record->parent >= one.number) {
      one.record.reset();
      one.problem = "says that it was made from a later one";
    }
    if (one.record)
      found.highest = std::max(found.highest, one.record->parent);
  }
  std::erase_if(found.generations, [](const auto& one) { return one.entry.kind != sys::EntryKind::directory; });
  read_images(system, as, found);
  return found;
}

Result<Contents> read_contents(sys::System& system, const std::string& path) {
  auto first = system.entries({.queries = {{.path = join_path(path, "conda-meta"), .follow = true, .list = true},
                                           {.path = join_path(path, "lib"), .follow = true, .list = true}}});
  for (const auto& entry : first)
    if (entry.kind == sys::EntryKind::unknown)
      return fail(entry.error());
  Contents contents;
  std::set<std::string> known;
  for (const auto& name : first[0].names)
    if (auto package = package_of_record(name)) {
      known.insert(distribution_name(package->name));
      if (package->name == "python")
        contents.python = package->version;
      contents.packages.push_back(std::move(*package));
    }
  sys::EntryRequest sites;
  for (const auto& name : first[1].names)
    if (name.starts_with("python")) {
      if (contents.python.empty())
        contents.python = name.substr(std::string_view("python").size());
      sites.queries.push_back(
          {.path = join_path(path, "lib/" + name + "/site-packages"), .follow = true, .list = true});
    }
  for (const auto& site : system.entries(sites))
    for (const auto& name : site.names)
      if (auto package = package_of_distribution(name);
          package && known.insert(distribution_name(package->name)).second)
        contents.packages.push_back(std::move(*package));
  std::ranges::sort(contents.packages, {}, &Package::name);
  return contents;
}

std::string user_name(sys::System& system, std::uint32_t uid) {
  const auto user = system.user(std::to_string(uid));
  return user ? user->name : fmt::format("uid {}", uid);
}

std::int64_t time_of(sys::System& system, const SharedEnvironment& environment) {
  const auto self = system.identity();
  const auto& holder = environment.holder;
  const bool is_ours = holder && holder->host == self.hostname && holder->pid == self.pid;
  return is_ours ? environment.held : std::chrono::system_clock::to_time_t(system.now());
}

} // namespace sharefs::conda
