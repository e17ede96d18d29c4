#pragma once
// The image of a generation: one file beside it. The tree is the original, and its image can be made again.
//   STORE/.generations/ENV/0003.sqfs       a squashfs; it gets this name when it is complete, and is never written
//   again STORE/.generations/ENV/0003.sqfs.json  its note (ImageNote), written before the image gets its name
//   STORE/.generations/ENV/new-0003.XXXXXX.sqfs  an image that is being made, or was left by a killed command
#include "conda/environment_store.hpp"

namespace sharefs::conda {

/// The facts about an image that are noted when it is made.
struct ImageNote {
  std::string sha256;       ///< 64 hexadecimal digits
  std::uint64_t bytes = 0;  ///< size of the image
  std::int64_t created = 0; ///< of the generation, by its record, since a later generation may have its number
  std::uint64_t files = 0;  ///< number of names in it that are not directories
  friend bool operator==(const ImageNote&, const ImageNote&) = default;
};
template <FieldsOf<ImageNote> N> auto fields(N& n) {
  return named("sha256", n.sha256, "bytes", n.bytes, "created", n.created, "files", n.files);
}

/// Number of hexadecimal digits in the name of a directory's copy.
inline constexpr std::size_t k_hash_digits = 16;
/// True for a checksum, or the beginning of one, of exactly `digits` hexadecimal digits.
bool is_hash(std::string_view text, std::size_t digits = 64);

/// Return the path of a generation's image, and of the image's note. `generation` is the path of the generation.
std::string image_path(const std::string& generation);
std::string image_note_path(const std::string& generation);

/// True for the name of an image or of its note beside the generations, complete or unfinished.
bool is_of_image(std::string_view name);
/// Returns files of images without a generation, which an interrupted command has left. Where others may write a name
/// proves nothing, so the first bytes of the file are compared, too.
std::vector<sys::Entry> left_images(sys::System& system, const SharedEnvironment& environment);

/// Returns one line of JSON.
std::string format_image_note(const ImageNote& note);
/// Fails if the text is no note of an image. It is not trusted: any user who may write in the store may have written
/// it.
Result<ImageNote> parse_image_note(std::string_view text);

/// Fails if the disk or the server failed (EIO, ESTALE). A file that is missing or may not be read is no failure.
Result<void> check_read(const sys::Entry& entry);

/// An image on the share, as it was read.
struct Image {
  std::string path;
  sys::Entry file, note_file;    ///< not followed
  std::optional<ImageNote> note; ///< nullopt: there is none, or it describes another generation or size
  /// True if there is an image of this generation, with the size in its note.
  [[nodiscard]] bool exists() const { return file.kind == sys::EntryKind::file && note.has_value(); }
  /// True if the file with the image's name cannot be used: it is incomplete, or of another generation.
  [[nodiscard]] bool is_damaged() const { return file.kind == sys::EntryKind::file && !note; }
  /// True if root of this host may mount it: the image and its note belong to root or the store's owner, and nobody
  /// else can write them. The kernel's squashfs does not protect itself against images that an attacker has written.
  [[nodiscard]] bool is_trusted(std::uint32_t store_owner) const;
  /// check_read() of both files.
  [[nodiscard]] Result<void> check() const;
};
/// Reads the image of a generation. `created`: of the generation, by its record.
Image probe_image(sys::System& system, const std::string& generation, std::int64_t created,
                  const std::optional<sys::User>& as = {});

} // namespace sharefs::conda
