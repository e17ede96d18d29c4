#pragma once
// Which thing a plan was made for, and whether an open descriptor still stands for it. A path says neither: whoever may
// write in a directory on the way can put another thing there.
#include "base/result.hpp"
#include "sys/process/wire.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <sys/stat.h>

namespace sharefs::sys {

/// A field that is 0, or empty, is not compared.
struct FileIdentity {
  std::uint64_t device = 0, inode = 0;
  std::optional<std::uint32_t> uid = {}, gid = {};
  std::uint32_t kind = 0;   ///< S_IFMT
  std::int64_t changed = 0; ///< ctime in nanoseconds: where the content was judged, and is not judged again

  /// Only these stay the same when the file gets another content, or is mounted anew.
  [[nodiscard]] FileIdentity owner_only() const { return {.uid = uid, .gid = gid, .kind = kind}; }
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};
template <FieldsOf<FileIdentity> I> auto fields(I& i) {
  return named("device", i.device, "inode", i.inode, "uid", i.uid, "gid", i.gid, "file_kind", i.kind, "changed",
               i.changed);
}

FileIdentity identity_of(const struct stat& status);
/// How what was found differs, in words: "a directory", "another one of uid 0", "uid 0 instead of 1001"; empty: not at
/// all.
std::string difference(const FileIdentity& expected, const struct stat& found);
/// `conflict`: "PATH: expected X, found Y".
Error conflict_error(const std::string& path, const std::string& expected, const std::string& found);

} // namespace sharefs::sys
