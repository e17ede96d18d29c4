#pragma once
// Records for which file a plan was made, and checks whether an open descriptor still refers to it. A path is not
// sufficient: anybody who may write to a directory in it can replace the file.
#include "base/result.hpp"
#include "sys/process/wire.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <sys/stat.h>

namespace sharefs::sys {

/// A field that is 0 or nullopt is not compared.
struct FileIdentity {
  std::uint64_t device = 0, inode = 0;
  std::optional<std::uint32_t> uid = {}, gid = {};
  std::uint32_t kind = 0;   ///< S_IFMT
  std::int64_t changed = 0; ///< ctime in nanoseconds; set if the content was checked and will not be checked again

  /// Returns only the fields that stay the same when the file is replaced by new content, or mounted again.
  [[nodiscard]] FileIdentity owner_only() const { return {.uid = uid, .gid = gid, .kind = kind}; }
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};
template <FieldsOf<FileIdentity> I> auto fields(I& i) {
  return named("device", i.device, "inode", i.inode, "uid", i.uid, "gid", i.gid, "file_kind", i.kind, "changed",
               i.changed);
}

FileIdentity identity_of(const struct stat& status);
/// Describes how the found file differs: "a directory", "another one, of uid 0", "uid 0 instead of 1001". Empty if it
/// does not differ.
std::string difference(const FileIdentity& expected, const struct stat& found);
/// Returns an Error `conflict`: "PATH: expected X, found Y".
Error conflict_error(const std::string& path, const std::string& expected, const std::string& found);

} // namespace sharefs::sys
