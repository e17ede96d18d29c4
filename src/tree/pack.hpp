#pragma once
// A whole tree in one file, an image of squashfs, by mksquashfs(1) of squashfs-tools, which is given the tree as a
// tar(5) on its standard input: so what is in the image is what was read and looked at here.
#include "tree/reader.hpp"
#include "tree/tree.hpp"

namespace sharefs::tree {

/// A file that the image has, and the tree may have not.
struct AddedFile {
  std::string path, text;
};

struct Packing {
  Place tree;
  std::string file; ///< path of the image, as that of `tree`, where nothing lies
  /// A tree on this host's own disk: a file there is read in place of one of `tree` that has the same path, size and
  /// time, and, if `near_of` is not empty, is the same file (inode) as in the tree `near_of`, whose copy `near` is.
  /// Empty: none.
  std::string near = {}, near_of = {};
  std::vector<AddedFile> added = {}; ///< in directories that the tree has; what the tree has itself stays
  /// A file that is not to be in the image, by its first 16 bytes. `find` knows all that lies in the tree.
  using Find = std::function<const Entry*(const std::string& path)>;
  std::function<bool(const Entry& file, std::string_view head, const Find& find)> leaves_out = {};
  /// The image is for nobody else than the tree is: these bits of its mode at most, and this group instead of the
  /// tree's.
  std::uint32_t most = 0444;
  std::optional<std::uint32_t> gid = {};
  std::int64_t made = 0; ///< seconds since 1970, for the image itself
};

struct Packed {
  std::string sha256; ///< of the image
  std::uint64_t bytes = 0;
  std::uint64_t files = 0; ///< names that are no directories
};
template <FieldsOf<Packed> P> auto fields(P& p) {
  return named("sha256", p.sha256, "bytes", p.bytes, "files", p.files);
}

/// All that lies in a tree that can be given to others as if it belonged to the owner and group of the tree itself: an
/// image has one owner (mksquashfs 4.5.1 gives the directory at its top no own one), and no ACLs. `unsupported`:
/// something is neither file, directory nor symbolic link, or others could read it then, or its owner or group no more.
Result<std::vector<Entry>> list_packable(Reader& tree, const Place& place);

/// Makes the image, which those may read who may read all of the tree; it is on the disk when this returns. All in it
/// has owner and group of the tree itself; ACLs and extended attributes are not in it, and a file with several names
/// is one file for each. zstd at level 3 (a tenth of the time of the default, and a seventh larger). What was made when
/// this fails is deleted. Errors: those of list_packable(); `unsupported`: mksquashfs is not installed, or cannot zstd;
/// `conflict`: another tree lies there, or it has changed meanwhile; those of the disk.
Result<Packed> pack(const Packing& packing, const Options& options, const OnProgress& progress = {});

} // namespace sharefs::tree
