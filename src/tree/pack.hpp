#pragma once
// Packs a whole tree into one squashfs image. mksquashfs(1) of squashfs-tools gets the tree as a tar(5) on its standard
// input, so that the image contains exactly the entries that were read and checked here.
#include "tree/reader.hpp"
#include "tree/tree.hpp"

namespace sharefs::tree {

/// A file that is added to the image.
struct AddedFile {
  std::string path, text;
};

struct Packing {
  Place tree;
  std::string file; ///< path of the image, seen from the same root as `tree`; it must not exist
  /// A tree on this host's own disk. Its file is read instead of the one in `tree` if path, size and time are the same,
  /// and, if `near_of` is not empty, if the file in `tree` is the same file (inode) as in the tree `near_of`, of which
  /// `near` is a copy. Empty: there is no such tree.
  std::string near = {}, near_of = {};
  std::vector<AddedFile> added = {}; ///< files in directories of the tree; a file that the tree already has is skipped
  /// Returns true for a file that is left out of the image; it gets its first 16 bytes. `find` finds any entry of the
  /// tree.
  using Find = std::function<const Entry*(const std::string& path)>;
  std::function<bool(const Entry& file, std::string_view head, const Find& find)> leaves_out = {};
  /// The highest mode of the image, whose readers never are more than those of the tree.
  std::uint32_t most = 0444;
  std::optional<std::uint32_t> gid = {}; ///< the group of the image; nullopt: that of the tree
  std::int64_t made = 0;                 ///< the time of the image itself, in seconds since 1970
};

struct Packed {
  std::string sha256; ///< checksum of the image
  std::uint64_t bytes = 0;
  std::uint64_t files = 0; ///< the number of names that are not directories
};
template <FieldsOf<Packed> P> auto fields(P& p) {
  return named("sha256", p.sha256, "bytes", p.bytes, "files", p.files);
}

/// Lists a tree, and checks that each entry can get the owner and group of the tree itself: an image has only one owner
/// (mksquashfs 4.5.1 cannot set a different one for the top directory), and no ACLs. Error `unsupported`: an entry is
/// not a file, directory or symbolic link, or others could read it then, or its owner or group could not read it any
/// more.
Result<std::vector<Entry>> list_packable(Reader& tree, const Place& place);

/// Takes those of the bits S_IRGRP and S_IROTH out of `readers` whose users may not read an entry with this mode (and
/// enter it, if it is a directory). The entry is one of list_packable(): if it has another group than the tree, that
/// may do the same as all others.
void narrow_readers(mode_t& readers, mode_t entry);
/// Returns the mode of a file with what a tree has, for those of `most` who may read all of the tree: `readers` by
/// narrow_readers(). `of_tree`: the file has the group of the tree. Another group gets the rights of all others.
mode_t mode_for(mode_t readers, std::uint32_t most, bool of_tree);

/// Makes the image and syncs it to the disk. Only those who may read all of the tree may read it. All entries get owner
/// and group of the tree itself; ACLs and extended attributes are left out, and a file with several names becomes
/// several files. It is compressed with zstd at level 3 (a tenth of the time of the default, and a seventh larger). On
/// an error the image is deleted. Errors: those of list_packable(); `unsupported`: mksquashfs is not installed, or has
/// no zstd; `conflict`: there is another tree, or it has changed meanwhile; errors of the disk.
Result<Packed> pack(const Packing& packing, const Options& options, const OnProgress& progress = {});

} // namespace sharefs::tree
