#pragma once
// Files under a root directory (`--root`), for paths that are known to be local: /etc, /var/lib/sharefs, /run.
// A path that may lie on a network mount or in a user's home goes through System::inspect or an Action instead.
#include "base/result.hpp"

#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace sharefs::sys {

struct FileInfo {
  enum class Kind { regular, directory, symlink, other };
  Kind kind = Kind::other;
  mode_t mode = 0; ///< permission bits, 07777
  uid_t uid = 0;
  gid_t gid = 0;
  std::uint64_t size = 0;
};

/// All paths are absolute as seen from inside the root; symbolic links are resolved inside the root
/// (openat2(2) RESOLVE_IN_ROOT), so a link in an installation tree never leads out of it.
class Files {
 public:
  explicit Files(std::string root = "/");
  [[nodiscard]] const std::string& root() const { return m_root; }
  [[nodiscard]] bool is_live() const { return m_root == "/"; }

  /// Whole content. `not_found`, `permission`; more than `limit` bytes is `failed`.
  [[nodiscard]] Result<std::string> read(const std::string& path, std::size_t limit = 16U << 20U) const;
  /// Whole content, or nullopt if there is no such file.
  [[nodiscard]] Result<std::optional<std::string>> read_if_exists(const std::string& path,
                                                                  std::size_t limit = 16U << 20U) const;
  struct Opened {
    std::string content;
    FileInfo info; ///< of the file that was read (fstat), so that trust is judged without a race
  };
  /// As read, with owner and mode of the very file that was opened.
  [[nodiscard]] Result<Opened> read_with_info(const std::string& path, std::size_t limit = 16U << 20U) const;
  /// lstat; nullopt if there is none.
  [[nodiscard]] Result<std::optional<FileInfo>> info(const std::string& path) const;
  /// Names in a directory, sorted, without . and ..; `not_found` if there is no directory.
  [[nodiscard]] Result<std::vector<std::string>> list(const std::string& path) const;

  /// Replace or create atomically: temporary file in the same directory, fsync, owner, mode, ACL and xattrs of the file
  /// that is replaced (or `mode` for a new one), rename, fsync of the directory. A symlink is followed inside the root
  /// and its target is replaced. Missing parent directories are an error (`not_found`).
  Result<void> write(const std::string& path, std::string_view content, mode_t mode = 0644) const;
  /// As write, but fails with `conflict` if the content is not `before` at the time of the rename (nullopt: no file).
  Result<void> write_if(const std::string& path, const std::optional<std::string>& before, std::string_view content,
                        mode_t mode = 0644) const;
  Result<void> remove(const std::string& path) const; ///< unlink and fsync of the directory
  Result<void> make_directories(const std::string& path, mode_t mode = 0755) const;

 private:
  std::string m_root;
};

} // namespace sharefs::sys
