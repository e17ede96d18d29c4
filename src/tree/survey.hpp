#pragma once
// What a tree holds, in one number by which it is known again.
#include "tree/tree.hpp"

namespace sharefs::tree {

struct Survey {
  std::uint64_t files = 0; ///< names of all that is no directory
  std::uint64_t bytes = 0; ///< sizes of regular files
  /// 64 hexadecimal digits, of the paths, kinds, modes, owners, sizes, times and links of all that lies there, and if
  /// asked for the inodes. Not of contents: what rewrites a file and gives it its old time is not seen.
  std::string fingerprint;
  friend bool operator==(const Survey&, const Survey&) = default;
};
template <FieldsOf<Survey> S> auto fields(S& s) {
  return named("files", s.files, "bytes", s.bytes, "fingerprint", s.fingerprint);
}
/// Reads names and attributes only. Of `options` `as` and `deadline` matter. What cannot be read is an error.
Result<Survey> survey(const Place& place, const Options& options, const OnProgress& progress = {}, bool inodes = false);

/// One name in a tree, with what a node needs to have the same.
struct Listed {
  std::string path, target = {}; ///< `target`: of a symbolic link
  std::uint32_t mode = 0;        ///< with its kind
  std::uint64_t bytes = 0;       ///< of a regular file, as `sha256`
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
  std::vector<Listed> entries;    ///< by path, directories before what is in them; the first is the tree itself
  friend bool operator==(const Listing&, const Listing&) = default;
};
template <FieldsOf<Listing> L> auto fields(L& l) {
  return named("uid", l.uid, "gid", l.gid, "entries", l.entries);
}
/// Reads all of a tree of few files. Errors: those of list_packable().
Result<Listing> list_contents(const Place& place, const Options& options, const OnProgress& progress = {});

/// As fetch(), for a file of a listing, which gets its mode and time, and by root the owner and group of the tree.
Result<FetchReport> fetch_listed(const Place& from, const Place& to, const Listing& listing, const Listed& file,
                                 const Options& options, const OnProgress& progress,
                                 const std::vector<Upstream>& upstreams);

/// The checksum and size of a file, without links. Of `options` `as` and `deadline` matter.
Result<FileContent> read_content(const Place& file, const Options& options, const OnProgress& progress = {});

} // namespace sharefs::tree
