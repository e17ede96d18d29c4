#pragma once
// A generation in one file beside it. The tree stays the truth: an image is made of it, and can be made again.
//   STORE/.generations/ENV/0003.sqfs       squashfs, complete from the moment when it has this name, never written
//   again STORE/.generations/ENV/0003.sqfs.json  its note (ImageNote), written before the image has its name
//   STORE/.generations/ENV/new-0003.XXXXXX.sqfs  being made, or left by one that was killed
#include "conda/environment_store.hpp"

namespace sharefs::conda {

/// What is known of an image.
struct ImageNote {
  std::string sha256;       ///< 64 hexadecimal digits
  std::uint64_t bytes = 0;  ///< size of the image
  std::int64_t created = 0; ///< of the generation, by its record: a later one may have its number
  std::uint64_t files = 0;  ///< names in it that are no directories
  friend bool operator==(const ImageNote&, const ImageNote&) = default;
};
template <FieldsOf<ImageNote> N> auto fields(N& n) {
  return named("sha256", n.sha256, "bytes", n.bytes, "created", n.created, "files", n.files);
}

/// Of the name of a copy of a directory.
inline constexpr std::size_t k_hash_digits = 16;
/// It is a checksum of so many digits, or the beginning of one.
bool is_hash(std::string_view text, std::size_t digits = 64);

/// Of the path of a generation.
std::string image_path(const std::string& generation);
std::string image_note_path(const std::string& generation);

/// A name beside the generations: of an image or its note, whole or unfinished.
bool is_of_image(std::string_view name);
/// Files of images that no generation has, which a command that was cut off has left. A name proves nothing where
/// others may write: an image is known by its first bytes.
std::vector<sys::Entry> left_images(sys::System& system, const SharedEnvironment& environment);

/// JSON, one line.
std::string format_image_note(const ImageNote& note);
/// `failed`: no note of ours. Whoever may write in the store may have written anything.
Result<ImageNote> parse_image_note(std::string_view text);

/// An image on the share, as it lies there.
struct Image {
  std::string path;
  sys::Entry file, note_file;    ///< not followed
  std::optional<ImageNote> note; ///< nullopt: there is none, or it is of another generation or size
  /// There is an image of this generation, of the size that its note says.
  [[nodiscard]] bool exists() const { return file.kind == sys::EntryKind::file && note.has_value(); }
  /// What has the name of one is not that: it was cut off, or is of another generation.
  [[nodiscard]] bool is_damaged() const { return file.kind == sys::EntryKind::file && !note; }
  /// Root of this host may mount it: image and note are of root or of the store's owner, and nobody else can write
  /// them. The kernel's squashfs is not made for images that an enemy has written.
  [[nodiscard]] bool is_trusted(std::uint32_t store_owner) const;
};
/// `created`: of the generation, by its record.
Image probe_image(sys::System& system, const std::string& generation, std::int64_t created,
                  const std::optional<sys::User>& as = {});

} // namespace sharefs::conda
