#include "conda/image.hpp"

#include "base/json.hpp"
#include "base/json_fields.hpp"
#include "base/path.hpp"
#include "base/try.hpp"
#include "conda/prefix.hpp"
#include "conda/staging.hpp"
#include "plan/apply.hpp"
#include "tree/survey.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::conda {

namespace {

constexpr std::string_view k_image_magic = "hsqs"; // fs/squashfs/squashfs_fs.h of the kernel
constexpr std::uint64_t k_part_of_tree = 2;        ///< an image may take this part of the tree's size; a third is usual

/// Returns one line of JSON.
std::string format_image_note(const ImageNote& note) {
  nlohmann::ordered_json json{{"sharefs", 1}};
  add_fields(json, note, JsonTexts::for_people);
  return json.dump() + "\n";
}

/// Fails if the text is no note of an image. It is not trusted: any user who may write in the store may have written
/// it.
Result<ImageNote> parse_image_note(std::string_view text) {
  TRY_ASSIGN(const auto json, read_json<nlohmann::ordered_json>(
                                  text, {.bytes = k_largest_note, .depth = 2, .values = 20, .members = 20}));
  ImageNote note;
  if (member(json, "sharefs") != 1 || read_fields(json, note) != nullptr || !is_hash(note.sha256))
    return fail(ErrorCode::failed, "is no note of an image");
  return note;
}

/// True for a stale compiled file. Python would compile its source at each start, and could not write the result to a
/// read-only image.
bool is_stale_in(const tree::Entry& file, std::string_view head, const tree::Packing::Find& find) {
  const auto source = is_compiled(file.path) ? source_of(file.path) : std::string();
  const auto* there = source.empty() ? nullptr : find(source);
  return there != nullptr && is_stale(head, there->mtime, there->size);
}

} // namespace

bool is_hash(std::string_view text, std::size_t digits) {
  return text.size() == digits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string image_path(const std::string& generation) {
  return generation + ".sqfs";
}

std::string image_note_path(const std::string& generation) {
  return image_path(generation) + ".json";
}

bool is_of_image(std::string_view name) {
  if (name.ends_with(".sqfs.json"))
    name.remove_suffix(std::string_view(".json").size());
  if (!name.ends_with(".sqfs"))
    return false;
  name.remove_suffix(std::string_view(".sqfs").size());
  return generation_number(name).has_value() || (name.starts_with("new-") && unfinished_generation(name));
}

bool is_unfinished_text(std::string_view name) {
  return name.starts_with('.') && name.find(".json.sharefs-") != std::string_view::npos &&
         used_number(name.substr(1)).has_value();
}

std::vector<sys::Entry> left_images(sys::System& system, const SharedEnvironment& environment) {
  sys::EntryRequest request;
  for (const auto& name : environment.left_images)
    request.queries.push_back({.path = join_path(environment.root.path, name),
                               .read_bytes = k_image_magic.size(),
                               .links = sys::Links::none});
  auto left = system.entries(request);
  std::erase_if(left, [](const sys::Entry& one) {
    const bool begun = one.content.find_first_not_of('\0') == std::string::npos; // the magic number is written last
    return one.kind != sys::EntryKind::file ||
           !(begun || one.content == k_image_magic || (!one.path.ends_with(".sqfs") && one.content.starts_with('{')));
  });
  return left;
}

bool is_trusted(const sys::Entry& file, std::uint32_t store_owner) {
  constexpr std::uint32_t k_group_or_others_write = 0022;
  return file.kind == sys::EntryKind::file && (file.uid == 0 || file.uid == store_owner) &&
         (file.mode & k_group_or_others_write) == 0;
}

bool Image::is_trusted(std::uint32_t store_owner) const {
  return conda::is_trusted(file, store_owner) && conda::is_trusted(note_file, store_owner);
}

Result<void> check_read(const sys::Entry& entry) {
  const bool failed = entry.error_number != 0 && entry.error().code == ErrorCode::failed;
  return failed ? Result<void>(fail(entry.error())) : Result<void>{};
}

Result<void> Image::check() const {
  TRY(check_read(file));
  return check_read(note_file);
}

Image probe_image(sys::System& system, const std::string& generation, std::int64_t created,
                  const std::optional<sys::User>& as) {
  Image image;
  image.path = image_path(generation);
  auto entries = system.entries(
      {.queries = {{.path = image.path, .links = sys::Links::trusted},
                   {.path = image_note_path(generation), .read_bytes = k_largest_note, .links = sys::Links::trusted}},
       .as = as});
  image.file = std::move(entries[0]);
  image.note_file = std::move(entries[1]);
  if (image.note_file.kind != sys::EntryKind::file || image.file.kind != sys::EntryKind::file)
    return image;
  if (auto note = parse_image_note(image.note_file.content);
      note && note->created == created && note->bytes == image.file.size)
    image.note = std::move(*note);
  return image;
}

Result<ImageNote> make_image(sys::System& system, tree::Packing packing, const Generation& record,
                             const std::string& name, const plan::Say& say) {
  const auto directory = system.entry({.path = packing.file}); // it is missing, so `ancestor` is its directory
  TRY(check_room(system, directory, {.files = 1, .bytes = record.bytes / k_part_of_tree}, ""));
  if (!name.empty())
    packing.leaves_out = is_stale_in;
  packing.made = record.created;
  packing.added = protection_marks(name, record.python);
  std::erase_if(packing.added, [](const tree::AddedFile& one) { return base_name(one.path) != "EXTERNALLY-MANAGED"; });
  const tree::Options options{.total_files = record.files, .total_bytes = record.bytes};
  TRY_ASSIGN(const auto packed, tree::pack(packing, options, say.progress("making the image of " + packing.tree.path)));
  return ImageNote{packed.sha256, packed.bytes, record.created, packed.files};
}

Result<void> clear_place(sys::System& system, const std::string& path) {
  const auto there = system.entry({.path = path, .links = sys::Links::trusted});
  if (there.kind == sys::EntryKind::directory)
    return fail(ErrorCode::conflict, path + " is a directory, where an image or its note is to lie",
                fmt::format("see what it holds, then `mv {0} {0}.old`", shell_quote(path)));
  return there.exists() ? system.files().remove(path) : Result<void>{};
}

Result<void> write_image_note(sys::System& system, const ImageNote& note, const std::string& generation) {
  const auto path = image_note_path(generation);
  auto cleared = clear_place(system, path);
  return cleared ? system.files().write_if(path, std::nullopt, format_image_note(note)) : cleared;
}

Result<bool> is_as_noted(sys::System& system, const std::string& path, const ImageNote& note, const plan::Say& say) {
  return tree::read_content({.path = path, .root = system.files().root()}, {.total_bytes = note.bytes},
                            say.progress("reading " + path))
      .map([&](const tree::FileContent& content) { return content == tree::FileContent{note.sha256, note.bytes}; });
}

Result<void> publish_image(sys::System& system, const std::string& file, const ImageNote& note,
                           const std::string& generation) {
  TRY(write_image_note(system, note, generation));
  TRY(clear_place(system, image_path(generation)));
  return plan::apply_action(plan::Rename{file, image_path(generation), std::nullopt}, system).map([](plan::Outcome) {});
}

} // namespace sharefs::conda
