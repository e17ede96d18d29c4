#pragma once
// What a tree holds, in one number by which it is known again.
#include "tree/tree.hpp"

namespace sharefs::tree {

struct Survey {
  std::uint64_t files = 0; ///< names of all that is no directory
  std::uint64_t bytes = 0; ///< sizes of regular files
  /// 64 hexadecimal digits, of the paths, kinds, modes, sizes, times and links of all that lies there, and if asked for
  /// the inodes. Not of contents: what rewrites a file and gives it its old time is not seen.
  std::string fingerprint;
  friend bool operator==(const Survey&, const Survey&) = default;
};
template <FieldsOf<Survey> S> auto fields(S& s) {
  return named("files", s.files, "bytes", s.bytes, "fingerprint", s.fingerprint);
}
/// Reads names and attributes only. Of `options` `as` and `deadline` matter. What cannot be read is an error.
Result<Survey> survey(const Place& place, const Options& options, const OnProgress& progress = {}, bool inodes = false);

/// The checksum and size of a file, without links. Of `options` `as` and `deadline` matter.
Result<FileContent> read_content(const Place& file, const Options& options, const OnProgress& progress = {});

} // namespace sharefs::tree
