#pragma once
// Computes a fingerprint of a tree, and lists its entries with their checksums.
#include "tree/tree.hpp"

namespace sharefs::tree {

struct Survey {
  std::uint64_t files = 0; ///< the number of names that are not directories
  std::uint64_t bytes = 0; ///< sizes of regular files
  /// 64 hexadecimal digits: a hash of the paths, types, modes, owners, sizes, times and link targets of all entries,
  /// and the inodes if requested. Contents are not read, so a file that is rewritten and gets its old time is not
  /// noticed.
  std::string fingerprint;
  friend bool operator==(const Survey&, const Survey&) = default;
};
template <FieldsOf<Survey> S> auto fields(S& s) {
  return named("files", s.files, "bytes", s.bytes, "fingerprint", s.fingerprint);
}
/// Reads only names and attributes. Uses only `as` and `deadline` of `options`. An entry that cannot be read is an
/// error. Directories named `without`, at any depth, are left out.
Result<Survey> survey(const Place& place, const Options& options, const OnProgress& progress = {}, bool inodes = false,
                      const std::string& without = {});

/// One name in a tree, with all data that a node needs to make the same entry.
struct Listed {
  std::string path, target = {}; ///< `target` is that of a symbolic link
  std::uint32_t mode = 0;        ///< including the file type
  std::uint64_t bytes = 0;       ///< size of a regular file
  std::int64_t mtime = 0;
  std::string sha256 = {};
  friend bool operator==(const Listed&, const Listed&) = default;
};
template <FieldsOf<Listed> L> auto fields(L& l) {
  return named("path", l.path, "target", l.target, "mode", l.mode, "bytes", l.bytes, "mtime", l.mtime, "sha256",
               l.sha256);
}
struct Listing {
  std::uint32_t uid = 0, gid = 0; ///< of the tree itself
  std::vector<Listed> entries;    ///< sorted by path, directories before their entries; the first is the tree itself
  friend bool operator==(const Listing&, const Listing&) = default;
};
template <FieldsOf<Listing> L> auto fields(L& l) {
  return named("uid", l.uid, "gid", l.gid, "entries", l.entries);
}
/// Reads all contents of a tree, so it is only for trees of few files. Errors: those of list_packable().
Result<Listing> list_contents(const Place& place, const Options& options, const OnProgress& progress = {});

/// Returns checksum and size of a file; a symbolic link is not followed. Uses only `as` and `deadline` of `options`.
Result<FileContent> read_content(const Place& file, const Options& options, const OnProgress& progress = {});

} // namespace sharefs::tree
