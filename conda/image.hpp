#pragma once
// The image of a generation: one file beside it. The tree is the original, and its image can be made again.
//   STORE/.generations/ENV/0003.sqfs             a squashfs, which gets this name when it is complete, and is never
//                                                written again
//   STORE/.generations/ENV/0003.sqfs.json        its note (ImageNote), written before the image gets its name
//   STORE/.generations/ENV/new-0003.XXXXXX.sqfs  an image that is being made, or was left by a killed command
#include "conda/environment_store.hpp"
#include "plan/say.hpp"
#include "tree/pack.hpp"

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
/// True for the name of a record or a note that was never finished: `.0001.json.sharefs-PID`, see sys::Files.
bool is_unfinished_text(std::string_view name);
/// Returns files of images without a generation and unfinished texts, which an interrupted command has left. Where
/// others may write a name proves nothing, so the first bytes of the file are compared, too.
std::vector<sys::Entry> left_images(sys::System& system, const SharedEnvironment& environment);

/// Fails if the disk or the server failed (EIO, ESTALE). A file that is missing or may not be read is no failure.
Result<void> check_read(const sys::Entry& entry);

/// True if only root or the owner of the store can have written the file.
bool is_trusted(const sys::Entry& file, std::uint32_t store_owner);

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

/// Makes the file `packing.file`, which must not exist, from the tree of the generation with this record, or of one
/// that is being made. Users who may read the tree can read the file. `name` is the environment's name; its image gets
/// a file EXTERNALLY-MANAGED (PEP 668), since pip would install into the user's home if it cannot write to the
/// environment, and no compiled files that do not fit their sources. With an empty `name` the image has everything in
/// the tree. Errors: those of tree::pack(); `failed`: there is no room.
Result<ImageNote> make_image(sys::System& system, tree::Packing packing, const Generation& record,
                             const std::string& name, const plan::Say& say);
/// Removes an entry at the path of an image, its note or a list: any user who may write in the store may have put a
/// link or a FIFO there. `conflict`: it is a directory, which may hold a user's work.
Result<void> clear_place(sys::System& system, const std::string& path);
/// Writes the image note of a generation, and replaces any other entry there.
Result<void> write_image_note(sys::System& system, const ImageNote& note, const std::string& generation);
/// True if the file has the size and checksum in the note of an image. Reads all of it.
Result<bool> is_as_noted(sys::System& system, const std::string& path, const ImageNote& note, const plan::Say& say);
/// Gives the image `file` its final name and writes its note; replaces other entries there. `conflict`: a directory has
/// one of the names.
Result<void> publish_image(sys::System& system, const std::string& file, const ImageNote& note,
                           const std::string& generation);

} // namespace sharefs::conda
