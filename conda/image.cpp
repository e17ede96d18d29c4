#include "conda/image.hpp"

#include "base/json.hpp"
#include "base/json_fields.hpp"
#include "base/path.hpp"
#include "base/try.hpp"

#include <algorithm>

namespace sharefs::conda {

namespace {

constexpr std::uint32_t k_group_or_others_write = 0022;
constexpr std::string_view k_image_magic = "hsqs"; // fs/squashfs/squashfs_fs.h of the kernel

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

std::vector<sys::Entry> left_images(sys::System& system, const SharedEnvironment& environment) {
  sys::EntryRequest request;
  for (const auto& name : environment.left_images)
    request.queries.push_back({.path = join_path(environment.root.path, name),
                               .read_bytes = k_image_magic.size(),
                               .links = sys::Links::none});
  auto left = request.queries.empty() ? std::vector<sys::Entry>{} : system.entries(request);
  std::erase_if(left, [](const sys::Entry& one) {
    const bool begun = one.content.find_first_not_of('\0') == std::string::npos; // the magic number is written last
    return one.kind != sys::EntryKind::file ||
           !(begun || one.content == k_image_magic || (one.path.ends_with(".json") && one.content.starts_with('{')));
  });
  return left;
}

std::string format_image_note(const ImageNote& note) {
  nlohmann::ordered_json json{{"sharefs", 1}};
  add_fields(json, note, JsonTexts::for_people);
  return json.dump() + "\n";
}

Result<ImageNote> parse_image_note(std::string_view text) {
  TRY_ASSIGN(const auto json, read_json<nlohmann::ordered_json>(
                                  text, {.bytes = k_largest_note, .depth = 2, .values = 20, .members = 20}));
  const auto version = json.is_object() ? json.find("sharefs") : json.end();
  ImageNote note;
  if (version == json.end() || *version != 1 || read_fields(json, note) != nullptr || !is_hash(note.sha256))
    return fail(ErrorCode::failed, "is no note of an image");
  return note;
}

bool Image::is_trusted(std::uint32_t store_owner) const {
  return std::ranges::all_of(std::initializer_list<const sys::Entry*>{&file, &note_file}, [&](const sys::Entry* one) {
    return one->kind == sys::EntryKind::file && (one->uid == 0 || one->uid == store_owner) &&
           (one->mode & k_group_or_others_write) == 0;
  });
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

} // namespace sharefs::conda
